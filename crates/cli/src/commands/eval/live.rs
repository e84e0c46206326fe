//! Asks models for the answers, and appends each to a file, from which a later run continues.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

use formwork::config::Defaults;
use formwork::providers::Providers;
use formwork_batch as batch;
use formwork_core::{Error, ErrorKind, Outcome, Structure as _, Usage};
use formwork_eval::{Effort, Gate};
use formwork_evidence::Compare;
use formwork_extract::{CancellationToken, Extractor, ExtractorBuilder};
use formwork_ledger::Recorder;
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};

use super::gold::{self, text_of};
use super::{Args, digest, id_text, notes::Notes};
use crate::commands::extract::schema::{self, Given, Marks, Usable};
use crate::exit::Failed;
use crate::flags::{set, usual};
use crate::jsonl::{Row, numbered};
use crate::rows::{EvalAnswer, EvalGold};
use crate::targets::{Opened, Targets};
use crate::{files, interrupt, terminal};

/// The maximum number of extractors of a target for the schemas of rows.
const KEPT: usize = 64;

/// The answers of the targets.
pub(super) struct Recorded {
    pub(super) file: PathBuf,
    /// The names of the configurations.
    pub(super) names: Vec<String>,
    /// The keys of the answers that count, of those that the file has.
    pub(super) keys: Rc<Keys>,
}

/// Asks all targets.
pub(super) fn ask(args: &Args, providers: &Providers, notes: &mut Notes) -> Result<Recorded, Failed> {
    if args.gold == Path::new("-") {
        return Err(Failed::usage(
            "the gold is read twice, so it has to be a file or a folder: standard input cannot be used with --model and --provider",
        ));
    }
    let file = match &args.save {
        Some(file) => file.clone(),
        None => named(&args.gold)?.with_extension("answers.jsonl"),
    };
    let done = earlier(&file, args.resume)?;
    let cancel = CancellationToken::new();
    let end = interrupt::run(&cancel, async {
        let configurations = configurations(args, providers).await?;
        let names = configurations.iter().map(|one| one.name.clone()).collect();
        let asking =
            Asking { args, providers, cancel: &cancel, done, keys: Keys::new(), found: 0, configurations };
        let (keys, stopped) = asking.run(&file, notes).await?;
        Ok((Recorded { file: file.clone(), names, keys: Rc::new(keys) }, stopped))
    });
    match end {
        Ok((recorded, None)) => Ok(recorded),
        Ok((recorded, Some(stopped))) => {
            notes.failed(format!(
                "{stopped}; the rows without an answer are not scored: --resume continues with them"
            ));
            Ok(recorded)
        }
        Err(failed) if failed.is_interrupted() => Err(Failed::stopped(format!(
            "interrupted: {} has the answers so far, and --resume continues",
            file.display()
        ))),
        Err(failed) => Err(failed),
    }
}

/// Returns the gold with its name, which `.` and `..` lack.
fn named(gold: &Path) -> Result<PathBuf, Failed> {
    if gold.file_name().is_some() {
        return Ok(gold.to_owned());
    }
    gold.canonicalize().map_err(|error| Failed::usage(format!("cannot read {}: {error}", gold.display())))
}

/// Returns the digests of the answers that a file has already.
fn earlier(file: &Path, resume: bool) -> Result<HashSet<u64>, Failed> {
    let length = file.metadata().map_or(0, |file| file.len());
    if length > 0 && !resume {
        return Err(Failed::usage(format!(
            "{} has the answers of an earlier evaluation: continue it with --resume, or name another file with --save",
            file.display()
        )));
    }
    if length == 0 {
        return Ok(HashSet::new());
    }
    let answered = |(_, row): (usize, Row<EvalAnswer>)| {
        let row = row.ok()?;
        row.value.filter(|value| !value.is_null())?;
        Some(answer(&row.configuration?, &row.id, &row.key?))
    };
    numbered(file)?.filter_map(|row| row.map(answered).transpose()).collect()
}

/// Returns the digest of an answer: its configuration, the id of its row, and its key.
fn answer(configuration: &str, id: &Value, key: &str) -> u64 {
    digest(&format!("{configuration}\n{}\n{key}", id_text(id)))
}

/// A contract and a target.
struct Configuration {
    name: String,
    usable: Option<Usable>,
    opened: Rc<Opened>,
    recorder: Option<Recorder>,
    /// The extractors by their schemas, each with the digest of its question.
    extractors: HashMap<String, (Extractor<Value>, String)>,
}

async fn configurations(args: &Args, providers: &Providers) -> Result<Vec<Configuration>, Failed> {
    let mut contracts: Vec<Option<Given>> = Vec::new();
    for file in &args.contract {
        contracts.push(Some(schema::of_contract(file, &Marks::default(), &[], providers.rules(), false)?));
    }
    if contracts.is_empty() {
        let common = args.schema.as_deref().map(|file| -> Result<Given, Failed> {
            let refused = |error| Failed::usage(format!("{}: {error}", files::name(file)));
            let usable = schema::usable(files::json(file)?, &Marks::default(), providers.rules(), false);
            Ok(Given { name: files::name(file), usable: usable.map_err(refused)? })
        });
        contracts.push(common.transpose()?);
    }
    for Given { name, usable } in contracts.iter_mut().flatten() {
        // Another comparison is no other question.
        let refused = |error| Failed::usage(format!("{name}: {error}"));
        Compare::take(&mut usable.schema).map_err(refused)?;
        // Answers to a path that the schema does not have would be paid for and not scored.
        let missing = |gate: &Gate| {
            let reason = usable.compiled.missing(&gate.path()?)?;
            Some(Failed::usage(format!("{name}: the gate `{gate}`: {reason}")))
        };
        args.min.iter().find_map(missing).map_or(Ok(()), Err)?;
    }
    let ledger = args.recording.open()?;
    let targets =
        Targets::each(args.config.clone(), &args.provider, &args.model, args.retries.clone(), args.max_cost);
    let mut all = Vec::new();
    for (name, targets) in targets {
        let opened = Rc::new(targets.open(providers, false).await?);
        opened.say_how_small_the_default_model_is();
        for contract in &contracts {
            let of =
                contract.as_ref().filter(|_| contracts.len() > 1).map(|given| format!("{}, ", given.name));
            all.push(Configuration {
                name: format!("{}{name}", of.unwrap_or_default()),
                usable: contract.as_ref().map(|given| given.usable.clone()),
                recorder: opened.recorder(ledger.clone(), "eval"),
                opened: Rc::clone(&opened),
                extractors: HashMap::new(),
            });
        }
    }
    Ok(all)
}

impl Configuration {
    fn extractor(
        &mut self,
        args: &Args,
        schema: Option<&Value>,
        providers: &Providers,
    ) -> Result<(Extractor<Value>, String), Error> {
        let key = schema.filter(|_| self.usable.is_none()).map(Value::to_string).unwrap_or_default();
        if let Some(known) = self.extractors.get(&key) {
            return Ok(known.clone());
        }
        let usable = match (&self.usable, schema) {
            (Some(usable), _) => usable.clone(),
            (None, Some(schema)) => {
                let mut usable = schema::usable(schema.clone(), &Marks::default(), providers.rules(), false)?;
                Compare::take(&mut usable.schema).map_err(|error| Error::new(ErrorKind::Schema, error))?;
                usable
            }
            (None, None) => {
                return Err(Error::new(
                    ErrorKind::Config,
                    "the row has no `schema`, and there is no --schema and no --contract",
                ));
            }
        };
        let Usable { schema, unwrapped, rules, instructions, examples, .. } = usable;
        let flags = Defaults {
            max_attempts: args.max_attempts,
            temperature: args.temperature,
            timeout_seconds: args.timeout,
            ..Defaults::default()
        };
        let defaults = flags.or(self.opened.defaults.clone()).or(usual(3, Some(0.0), 120.0));
        let builder = defaults.apply(Extractor::for_document("answer", schema)).with_rules(rules);
        let builder = set(builder, defaults.policy(), ExtractorBuilder::with_policy);
        let builder = set(builder, unwrapped, ExtractorBuilder::with_warning);
        let builder = set(builder, instructions, ExtractorBuilder::with_system);
        let builder = self.opened.backends.iter().cloned().fold(builder, ExtractorBuilder::with_target);
        let builder = examples
            .into_iter()
            .fold(builder, |builder, (input, output)| builder.with_example(input, output));
        let extractor = builder.with_fail_fast().build()?;
        let question = batch::Question::of(&extractor).digest();
        let Defaults { max_attempts, attempts_per_target, max_tokens, retry_policy, .. } = &defaults;
        let settings =
            json!([self.opened.settings, max_attempts, attempts_per_target, max_tokens, retry_policy]);
        let settings = hash(&settings.to_string());
        let question = format!("{}-{question}-{settings:016x}", extractor.plan().digest());
        if self.extractors.len() < KEPT {
            self.extractors.insert(key, (extractor.clone(), question.clone()));
        }
        Ok((extractor, question))
    }
}

struct Asking<'a> {
    args: &'a Args,
    providers: &'a Providers,
    cancel: &'a CancellationToken,
    done: HashSet<u64>,
    /// The digest of the present key of each configuration and row.
    keys: Keys,
    /// The number of questions whose answers the file had.
    found: usize,
    configurations: Vec<Configuration>,
}

/// The digests of the keys of questions, by the digests of their configurations and rows.
pub(super) type Keys = HashMap<u64, u64>;

/// A question: the row and the configuration by their names, and its extraction.
struct Question {
    row: EvalAnswer,
    extraction: Result<formwork_extract::Extraction<Value>, Error>,
}

impl Asking<'_> {
    /// Asks all questions without an answer. Returns the reason why it stopped early.
    async fn run(mut self, file: &Path, notes: &mut Notes) -> Result<(Keys, Option<String>), Failed> {
        let (args, cancel) = (self.args, self.cancel);
        let schema = args.schema.as_deref().map(files::json).transpose()?;
        let mut out = open(file)?;
        let progress = terminal::count("answers", None);
        let (stop, mut reasons) = (CancellationToken::new(), Reasons::default());
        {
            let rows = gold::rows(&args.gold, schema.as_ref())?;
            let questions = rows.flat_map(|row| match row {
                Err(failed) => vec![Err(failed)],
                // Scoring names what is wrong with a row.
                Ok((_, Err(_))) => Vec::new(),
                Ok((_, Ok(row))) => self.questions(&row),
            });
            // After the stop, the keys of the other rows are still needed, so that their earlier answers count.
            let asked = questions.filter(|question| question.is_err() || !stop.is_cancelled());
            let answers = stream::iter(asked).take_until(cancel.cancelled()).map(|question| async move {
                let Question { row, extraction } = question?;
                let started = Instant::now();
                let result = match extraction {
                    Ok(extraction) => extraction.run().await,
                    Err(error) => Err(error),
                };
                Ok::<_, Failed>((
                    answered(row, &result, started),
                    result.err().map(|error| (error.kind(), error.to_string())),
                ))
            });
            let mut answers = std::pin::pin!(answers.buffer_unordered(usize::from(args.concurrency)));
            while let Some(answer) = answers.next().await {
                let (row, error) = answer?;
                reasons.add(error, &row, notes, &stop);
                if !reasons.is_unasked {
                    write(&mut out, &row, file)?;
                }
                progress.iter().for_each(|bar| bar.inc(1));
            }
        }
        out.sync_data().map_err(|error| unwritable(file, &error))?;
        if cancel.is_cancelled() {
            return Err(Failed::interrupted());
        }
        reasons.answered += self.found;
        Ok((self.keys, reasons.end()?))
    }

    /// Returns the questions of a row to all configurations.
    fn questions(&mut self, row: &EvalGold) -> Vec<Result<Question, Failed>> {
        (0..self.configurations.len()).filter_map(|at| self.question(at, row)).map(Ok).collect()
    }

    /// Returns the question of a row to a configuration; `None` if it is answered or cannot be scored, or has no text.
    fn question(&mut self, at: usize, row: &EvalGold) -> Option<Question> {
        let text = text_of(row, &self.args.gold).ok().flatten();
        let (args, providers) = (self.args, self.providers);
        let configuration = self.configurations.get_mut(at)?;
        let asked = configuration.extractor(args, row.schema.as_ref(), providers);
        let (extractor, question) = match asked {
            Ok((extractor, question)) => (Ok(extractor), question),
            Err(error) => (Err(error), String::new()),
        };
        let key = format!("{question}-{:016x}", hash(text.as_deref().unwrap_or_default()));
        let name = configuration.name.clone();
        // Of rows with the same id, the first one is scored.
        match self.keys.entry(digest(&format!("{name}\n{}", id_text(&row.id)))) {
            Entry::Occupied(_) => return None,
            Entry::Vacant(entry) => _ = entry.insert(digest(&key)),
        }
        let text = text.filter(|_| row.expected.is_some())?;
        if self.done.contains(&answer(&name, &row.id, &key)) {
            self.found += 1;
            return None;
        }
        let extraction = extractor.map(|extractor| {
            let extraction = extractor.extraction(text).with_cancel(self.cancel.clone());
            match configuration.recorder.clone() {
                Some(recorder) => extraction.with_observer(recorder),
                None => extraction,
            }
        });
        let row = EvalAnswer {
            id: row.id.clone(),
            value: Some(Value::Null),
            configuration: Some(name),
            models: configuration.opened.models().into_values().collect(),
            key: Some(key),
            error: None,
            effort: None,
            factors: BTreeMap::new(),
        };
        Some(Question { row, extraction })
    }
}

/// The errors of an evaluation.
#[derive(Default)]
struct Reasons {
    answered: usize,
    unavailable: Option<String>,
    budget: Option<String>,
    /// The error of a question that cannot be asked.
    unusable: Option<String>,
    /// Whether the last question had no answer because it was not asked.
    is_unasked: bool,
}

impl Reasons {
    fn add(
        &mut self,
        error: Option<(ErrorKind, String)>,
        row: &EvalAnswer,
        notes: &mut Notes,
        stop: &CancellationToken,
    ) {
        self.is_unasked = false;
        let Some((kind, message)) = error else {
            self.answered += 1;
            return;
        };
        match kind {
            ErrorKind::Budget => {
                stop.cancel();
                (self.budget, self.is_unasked) = (Some(message), true);
            }
            ErrorKind::Unavailable => (self.unavailable, self.is_unasked) = (Some(message), true),
            ErrorKind::Cancelled => self.is_unasked = true,
            ErrorKind::Config | ErrorKind::Schema => {
                notes.failed(format!("the row {} is not asked: {message}", row.id));
                (self.unusable, self.is_unasked) = (Some(message), true);
            }
            _ => {
                self.answered += 1;
                let configuration = row.configuration.as_deref().unwrap_or_default();
                notes.add(format!("the row {} has no answer of {configuration}: {message}", row.id));
            }
        }
    }

    fn end(self) -> Result<Option<String>, Failed> {
        match self {
            Self { answered: 0, unavailable: Some(message), .. } => Err(Failed::unavailable(message)),
            Self { answered: 0, unusable: Some(message), .. } => Err(Failed::usage(message)),
            Self { budget: Some(message), .. } | Self { unavailable: Some(message), .. } => Ok(Some(message)),
            _ => Ok(None),
        }
    }
}

fn answered(row: EvalAnswer, result: &Result<Outcome<Value>, Error>, started: Instant) -> EvalAnswer {
    let confidence = result.as_ref().map(Outcome::confidence).unwrap_or_default().into_iter();
    let factors =
        confidence.filter(|it| it.factor < 1.0).map(|it| (it.path.to_string(), it.factor)).collect();
    let (value, error, calls, usage, cost) = match result {
        Ok(outcome) => (outcome.value.clone(), None, outcome.calls.len(), outcome.usage, outcome.cost),
        Err(error) => {
            (Value::Null, Some(error.to_string()), error.calls().len(), error.usage(), error.cost())
        }
    };
    let Usage { input_tokens, output_tokens, .. } = usage;
    let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let effort =
        Effort { calls: calls as u64, input_tokens, output_tokens, micro_usd: cost.micro_usd, millis };
    EvalAnswer { value: Some(value), error, effort: Some(effort), factors, ..row }
}

/// Opens the file to append rows. A line that a killed process left unfinished is ended.
fn open(file: &Path) -> Result<File, Failed> {
    let open = || {
        let mut out = OpenOptions::new().create(true).read(true).append(true).open(file)?;
        if out.metadata()?.len() > 0 {
            out.seek(SeekFrom::End(-1))?;
            let mut last = [0];
            out.read_exact(&mut last)?;
            if last != *b"\n" {
                out.write_all(b"\n")?;
            }
        }
        Ok(out)
    };
    open().map_err(|error: std::io::Error| unwritable(file, &error))
}

fn write(out: &mut File, row: &EvalAnswer, file: &Path) -> Result<(), Failed> {
    let mut line = serde_json::to_vec(row).map_err(|error| Failed::usage(error.to_string()))?;
    line.push(b'\n');
    out.write_all(&line).map_err(|error| unwritable(file, &error))
}

fn unwritable(file: &Path, error: &std::io::Error) -> Failed {
    Failed::usage(format!("cannot write {}: {error}", file.display()))
}

/// Returns a digest of a text (FNV-1a), which is the same in later processes.
fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
