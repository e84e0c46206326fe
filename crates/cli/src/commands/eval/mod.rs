//! `formwork eval`: compares answers with gold. The answers are recorded, or models are asked for them.

mod answers;
pub(crate) mod calibration;
mod gold;
mod live;
mod notes;
mod words;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use formwork::providers::Providers;
use formwork_core::{Context, Validator as _};
use formwork_eval::{Baseline, Comparison, Evaluation, Gate, Profile, Report, Rows, Scored, Spent, page};
use formwork_evidence::{Compare, Index, LeafScore, counterparts, merge, merged_scores, scores};
use formwork_schema::{Compiled, Formats, compile_with};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use self::answers::{Answers, Taken};
use self::gold::text_of;
use self::notes::Notes;
use crate::exit::{Failed, Status};
use crate::flags::{one_of, seconds, temperature};
use crate::ledger::Recording;
use crate::rows::{EvalGold, RowError};
use crate::stderr::say;
use crate::targets::{RetryArgs, dollars};
use crate::{files, output, terminal};

const AFTER_HELP: &str = "\
Examples:
  formwork eval gold.jsonl --answers answers.jsonl
  formwork eval gold.jsonl --answers answers.jsonl --min '$.total >= 0.98' --min 'score >= 0.9'
  formwork eval gold.jsonl --answers new.jsonl --baseline old.jsonl --html eval.html
  formwork eval gold.jsonl --answers answers.jsonl --profile docubench --json > result.json
  formwork eval gold.csv --schema invoice.schema.json -m openai/gpt-5.4-mini -m ollama/qwen3:8b --max-cost 2 --html eval.html
  formwork eval gold.jsonl --answers gpt.jsonl --answers claude.jsonl --merge --calibrate calibration.json
      gold:    {\"id\", \"expected\", \"schema\"?, \"input\"? or \"file\"?}
      answers: {\"id\", \"value\"}, null for no answer
               CSV: columns `id`, `input` or `file`, and `expected` (JSON) or `expected.PATH` for each value
               a folder: its gold.jsonl; without one, NAME.json has the value of the text in NAME.txt or NAME.md
      result:  {\"score\", \"interval\", \"rows\": [{\"id\", \"score\"}], \"paths\": [{\"path\", \"right\", \"wrong\", \"invented\",
               \"missing\", \"not_stated\", \"accuracy\", \"interval\"}], \"baseline\"?, \"gates\"?, \"notes\"?, \"worst\"?}

Profiles:
  default     the score of a document is the share of right leaves. The schema says how a leaf is compared: `x-formwork-compare` is
              exact, number, {\"as\": \"number\", \"tolerance\": 0.01}, date, date-time, text, set or list. Otherwise texts are compared
              without case, white space and punctuation, format `date` as dates, `date-time` as instants, `enum` and `const` exactly, and the
              items of lists are assigned to each other in any order so that as many leaves as possible are right
  docubench   the rules of DocuBench's scorer

With --model or --provider (or with neither and without --answers: with the targets of the configuration), the models are asked.
Each answer is appended to a file beside the gold, GOLD.answers.jsonl; --resume keeps its answers and asks for the others.
Several configurations are compared in pairs on the same documents.

The score is the mean over all documents. Intervals are 95 % intervals by resampling documents.

Exit codes: 0 all gates are passed, 1 a gate failed, the whole interval of the difference from the baseline is below 0, or a row cannot
be scored (unless --allow-failures), 2 a file cannot be used, 3 no provider answered, 130 interrupted.";

/// Compare answers with hand-verified values
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The gold: JSON Lines, CSV (.csv), or a folder; `-` is standard input
    gold: PathBuf,
    /// Recorded answers: one JSON object per line with `id` and `value`; repeatable, to compare several files
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["model", "provider", "contract", "save", "resume"])]
    answers: Vec<PathBuf>,
    /// Ask this model, as in `formwork extract --model`; repeatable, to compare several models
    #[arg(long, short, value_name = "NAME")]
    model: Vec<String>,
    /// Ask this provider or list of the configuration; repeatable
    #[arg(long, value_name = "NAME")]
    provider: Vec<String>,
    /// Configuration file [default: formwork.toml in this folder or a parent folder]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Ask with this contract, as in `formwork extract --contract`; repeatable, to compare several contracts
    #[arg(long, short, value_name = "FILE", conflicts_with = "schema")]
    contract: Vec<PathBuf>,
    /// Append the answers of the models to this file [default: the gold's name with the ending .answers.jsonl]
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Keep the answers that the file has, and ask for the others. An answer counts if input, contract, target and settings are the same
    #[arg(long)]
    resume: bool,
    /// Maximum number of open questions at a time
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    concurrency: u16,
    /// Sampling temperature of the first attempt, from 0 to 2 [default: 0]
    #[arg(long, value_parser = temperature)]
    temperature: Option<f64>,
    /// Maximum number of attempts for each row [default: 3]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100))]
    max_attempts: Option<u32>,
    /// Time limit in seconds for each row, all attempts together [default: 120]
    #[arg(long, value_parser = seconds)]
    timeout: Option<f64>,
    /// Maximum cost of all calls together in US dollars; rows beyond it are not asked
    #[arg(long, value_name = "USD", value_parser = dollars)]
    max_cost: Option<f64>,
    #[command(flatten)]
    retries: RetryArgs,
    #[command(flatten)]
    recording: Recording,
    /// Add the answer that all configurations give together, value by value; no model is asked for it
    #[arg(long)]
    merge: bool,
    /// Fit the probability that a value is right, from its evidence and its agreement with the other configurations, and write it to FILE
    #[arg(long, value_name = "FILE")]
    calibrate: Option<PathBuf>,
    /// The profile by which documents are scored, see below
    #[arg(long, default_value = "default", value_parser = one_of::<Profile, 2>(["default", "docubench"]))]
    profile: Profile,
    /// The JSON Schema of gold rows without `schema` [default: the only file NAME.schema.json of a folder]
    #[arg(long, short)]
    schema: Option<PathBuf>,
    /// An earlier result of `--json`, or other answers to the same gold, to compare with
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// A condition on the score or on the accuracy of a path and all paths below it; can be repeated
    #[arg(long, value_name = "CONDITION", value_parser = str::parse::<Gate>)]
    min: Vec<Gate>,
    /// Write the result as a page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// The seed of the resamples of the intervals
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Exit with 0 even if rows cannot be scored
    #[arg(long)]
    allow_failures: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(mut args: Args, providers: &Providers) -> Result<Status, Failed> {
    if args.schema.is_none() && args.contract.is_empty() {
        args.schema = gold::schema_in(&args.gold);
        if let Some(found) = &args.schema {
            say!("note: the schema of the rows is {}", found.display());
        }
    }
    let args = &args;
    let inputs = [&args.gold].into_iter().chain(&args.answers).chain(&args.schema).chain(&args.baseline);
    files::one_standard_input(&inputs.map(PathBuf::as_path).collect::<Vec<_>>())?;
    args.html.iter().chain(&args.calibrate).try_for_each(|file| files::can_be_written(file))?;
    let mut notes = Notes::default();
    let common = args.schema.as_deref().map(files::json).transpose()?;
    if let (Some(schema), Some(file)) = (&common, &args.schema) {
        let unusable = |error: String| Failed::usage(format!("{}: {error}", files::name(file)));
        compile_with(schema, Formats::Annotate).map_err(|error| unusable(error.to_string()))?;
        Compare::take(&mut schema.clone()).map_err(unusable)?;
    }
    let mut sets = Vec::new();
    if args.answers.is_empty() {
        let live::Recorded { file, names, keys } = live::ask(args, providers, &mut notes)?;
        for name in names {
            let answers = Answers::open(&file, Some(&name), Some(Rc::clone(&keys)))?;
            sets.push(Set::new(Some(name), files::name(&file), answers, args.profile, true));
        }
    }
    for file in &args.answers {
        let name = files::name(file);
        let of = (args.answers.len() > 1 || args.merge).then(|| name.clone());
        let configurations = answers::configurations(file)?;
        if configurations.len() < 2 {
            sets.push(Set::new(of, name, Answers::open(file, None, None)?, args.profile, false));
            continue;
        }
        for one in configurations {
            let answers = Answers::open(file, Some(&one), None)?;
            let of = of.iter().cloned().chain([one]).collect::<Vec<_>>().join(", ");
            sets.push(Set::new(Some(of), name.clone(), answers, args.profile, false));
        }
    }
    let mut scoring = Scoring {
        args,
        common,
        merged: args.merge.then(|| (Evaluation::new(args.profile), Vec::new())),
        baseline: args.baseline.as_deref().map(|path| Earlier::read(path, args.profile)).transpose()?,
        schemas: Schemas::default(),
        seen: HashSet::new(),
        is_live: args.answers.is_empty(),
        notes,
        sets,
        count: 0,
        texts: 0,
    };
    let progress = terminal::count("rows", None);
    for row in gold::rows(&args.gold, scoring.common.clone().as_ref())? {
        let (place, row) = row?;
        scoring.row(&place, row)?;
        progress.iter().for_each(|bar| bar.inc(1));
    }
    drop(progress);
    scoring.end()
}

/// The answers of a configuration and their scores.
struct Set {
    name: Option<String>,
    /// The name of the file.
    file: String,
    answers: Answers,
    evaluation: Evaluation,
    scored: Vec<Scored>,
    /// Whether this command asked for the answers. A row that was not asked is not scored.
    is_live: bool,
    unasked: usize,
}

impl Set {
    fn new(name: Option<String>, file: String, answers: Answers, profile: Profile, is_live: bool) -> Self {
        let (evaluation, scored) = (Evaluation::new(profile), Vec::new());
        Self { name, file, answers, evaluation, scored, is_live, unasked: 0 }
    }
}

/// The state of the scoring.
struct Scoring<'a> {
    args: &'a Args,
    common: Option<Value>,
    sets: Vec<Set>,
    /// The evaluation of the answers that all sets give together.
    merged: Option<(Evaluation, Vec<Scored>)>,
    baseline: Option<Earlier>,
    schemas: Schemas,
    /// The digests of the ids of the gold so far: a million texts would take 90 MB.
    seen: HashSet<u64>,
    /// Whether this command asks for the answers.
    is_live: bool,
    notes: Notes,
    /// The number of rows that are scored, and of those with a text.
    count: usize,
    texts: usize,
}

impl Scoring<'_> {
    /// Scores the answers to a row of the gold.
    fn row(&mut self, place: &str, row: Result<EvalGold, String>) -> Result<(), Failed> {
        let row = match row {
            Ok(row) => row,
            Err(message) => {
                self.notes.failed(message);
                return Ok(());
            }
        };
        let key = id_text(&row.id);
        if self.seen.contains(&digest(&key)) {
            self.notes
                .failed(format!("{place}: the id {} is that of an earlier row: it is not scored", row.id));
            return Ok(());
        }
        let mut taken = Vec::new();
        for set in &mut self.sets {
            taken.push(set.answers.take(&key, &self.seen, &mut self.notes)?);
        }
        let earlier_answer = match &mut self.baseline {
            Some(Earlier::Answers(earlier)) => earlier.0.take(&key, &self.seen, &mut self.notes)?,
            _ => None,
        };
        self.seen.insert(digest(&key));
        let Some(expected) = &row.expected else {
            self.notes.failed(format!("{place}: the row has no `expected`: it is not scored"));
            return Ok(());
        };
        // All sets score the same rows.
        if let Some(Err(problem)) = row.schema.clone().map(|mut schema| Compare::take(&mut schema)) {
            self.notes.failed(format!("{place}: {problem}: the row is not scored"));
            return Ok(());
        }
        let text = text_of(&row, &self.args.gold);
        match (&text, self.is_live) {
            (Ok(None), true) => {
                self.notes.failed(format!("{place}: the row has no `input` and no `file`: it is not asked"));
            }
            (Err(problem), true) => self.notes.failed(format!("{place}: {problem}: it is not asked")),
            (Err(problem), false) => self.notes.add(format!("{place}: {problem}")),
            _ => {}
        }
        let text = text.ok().flatten();
        let schema = row.schema.as_ref().or(self.common.as_ref());
        let violated = |schemas: &mut Schemas, value: &Value| {
            let schema = schema.filter(|_| !value.is_null())?;
            schemas.violation(schema, value)
        };
        if let Some(problem) = violated(&mut self.schemas, expected) {
            self.notes.add(format!("{place}: the expected value {problem}: it is scored nevertheless"));
        }
        let mut given: Vec<Option<Value>> = Vec::new();
        let mut factors: Vec<BTreeMap<String, f64>> = Vec::new();
        for (set, answer) in self.sets.iter_mut().zip(taken) {
            given.push(answer.as_ref().map(|answer| answer.value.clone()).filter(|value| !value.is_null()));
            factors.push(answer.as_ref().map(|answer| answer.factors.clone()).unwrap_or_default());
            match &answer {
                Some(Taken { place: at, value, .. }) => {
                    if let Some(problem) = violated(&mut self.schemas, value) {
                        self.notes.add(format!("{at}: the answer {problem}: it is scored nevertheless"));
                    }
                }
                None if set.is_live && text.is_none() => continue,
                None if set.is_live => {
                    set.unasked += 1;
                    continue;
                }
                None => self.notes.add(format!(
                    "{place}: {} has no answer with the id {key}: all of its values are missing",
                    set.file
                )),
            }
            if let Err(problem) = set.evaluation.add(
                row.id.clone(),
                schema,
                expected,
                answer.as_ref().map(|answer| &answer.value),
            ) {
                self.notes.failed(format!("{place}: {problem}: the row is not scored"));
                return Ok(());
            }
        }
        // A score without evidence is another score, so rows without a text are fitted only if no row has one.
        let is_fitted = self.args.calibrate.is_some() && (text.is_some() || self.texts == 0);
        if text.is_some() && self.texts == 0 {
            let merged = self.merged.iter_mut().map(|(_, scored)| scored);
            self.sets.iter_mut().map(|set| &mut set.scored).chain(merged).for_each(Vec::clear);
        }
        self.count += 1;
        self.texts += usize::from(text.is_some());
        let answers: Vec<&Value> = given.iter().flatten().collect();
        let needs_index = self.merged.is_some() || is_fitted;
        let index = text.as_deref().filter(|_| needs_index).map(Index::new);
        let document = self.count;
        let of_leaves =
            |answer: &Value, others: &[&Value], is_merged: bool, factors: &BTreeMap<String, f64>| {
                let right = counterparts(answer, expected);
                let evidence = index.as_ref().map(|index| index.evidence(answer, schema));
                let scores = if is_merged { merged_scores } else { scores };
                let scored = scores(answer, others, evidence.as_deref(), schema).into_iter().zip(right);
                let factor = |leaf: &LeafScore| match factors.is_empty() {
                    true => 1.0,
                    false => factors.get(&leaf.path.to_string()).copied().unwrap_or(1.0),
                };
                let score = |leaf: LeafScore| leaf.score * factor(&leaf);
                let scored =
                    scored.map(|(leaf, it)| Scored { document, score: score(leaf), right: it.agrees() });
                scored.collect::<Vec<_>>()
            };
        if let Some((merged, scored)) = &mut self.merged {
            let value = (!answers.is_empty()).then(|| merge(&answers, index.as_ref()).value);
            merged.add(row.id.clone(), schema, expected, value.as_ref()).map_err(Failed::usage)?;
            if let Some(value) = value.filter(|_| is_fitted) {
                scored.extend(of_leaves(&value, &answers, true, &BTreeMap::new()));
            }
        }
        if is_fitted {
            for (at, set) in self.sets.iter_mut().enumerate() {
                let Some(Some(answer)) = given.get(at) else { continue };
                let others = given.iter().enumerate().filter(|(other, _)| *other != at);
                let others: Vec<&Value> = others.filter_map(|(_, value)| value.as_ref()).collect();
                set.scored.extend(of_leaves(
                    answer,
                    &others,
                    false,
                    factors.get(at).unwrap_or(&BTreeMap::new()),
                ));
            }
        }
        if let Some(Earlier::Answers(earlier)) = &mut self.baseline {
            // A row that the baseline lacks is not compared.
            if let Some(answer) = earlier_answer {
                earlier
                    .1
                    .add(row.id.clone(), schema, expected, Some(&answer.value))
                    .map_err(Failed::usage)?;
            }
        }
        Ok(())
    }

    /// Prints the result.
    fn end(mut self) -> Result<Status, Failed> {
        let args = self.args;
        if self.sets.iter().all(|set| set.evaluation.is_empty()) {
            let first = self.notes.all.first().map(|note| format!(": {note}")).unwrap_or_default();
            return Err(Failed::usage(format!(
                "{}: there is no row to score{first}",
                files::name(&args.gold)
            )));
        }
        for set in &mut self.sets {
            if let Some((count, first)) = set.answers.finish(&self.seen, &mut self.notes)? {
                self.notes.add(format!(
                    "{first}: no gold row has the id of this answer ({count} such answers): it is ignored"
                ));
            }
            if set.unasked > 0 {
                let name = set.name.as_deref().unwrap_or(&set.file);
                self.notes
                    .failed(format!("{} rows have no answer of {name} and are not scored", set.unasked));
            }
        }
        // What was paid for is printed, whatever cannot be made of it.
        let mut calibrated = None;
        if let Some(file) = &args.calibrate {
            let count = self.sets.len();
            let sets = self.sets.iter();
            let all: BTreeSet<&String> = sets.clone().flat_map(|set| set.answers.models()).collect();
            let all = || all.iter().map(|model| (*model).clone()).collect();
            let sets = sets.map(|set| {
                let models = set.answers.models().iter().cloned().collect();
                (set.name.as_deref().unwrap_or(&set.file), &set.scored[..], count - 1, models)
            });
            let merged =
                self.merged.iter().map(|(_, scored)| (calibration::MERGED, &scored[..], count, all()));
            calibrated = calibration::write(file, sets.chain(merged), self.texts > 0).err();
            match (self.texts, self.count - self.texts) {
                (_, 0) => {}
                (0, _) if calibrated.is_some() => {}
                (0, _) => self.notes.add(
                    "no row has a text, so the calibration is without evidence: `formwork extract` cannot use it"
                        .to_owned(),
                ),
                (_, rest) => {
                    self.notes.add(format!("{rest} rows without a text are left out of the calibration"));
                }
            }
        }
        let mut reports = Vec::new();
        for set in self.sets {
            let mut report = set.evaluation.report(args.seed);
            report.name = set.name;
            report.spent = (!set.answers.efforts.is_empty()).then(|| Spent::of(&set.answers.efforts));
            reports.push(report);
        }
        if let Some((merged, _)) = self.merged {
            reports.push(merged.report(args.seed).with_name(calibration::MERGED));
        }
        let earlier = self.baseline.map(|earlier| earlier.rows(args.seed));
        let (mut passed, mut unchecked) = (true, None);
        for report in &mut reports {
            if let Some(rows) = &earlier {
                let nothing = || {
                    let file = args.baseline.as_deref().map(files::name).unwrap_or_default();
                    Failed::usage(format!(
                        "{file}: the baseline has no answer to a row of the gold: name a result of `formwork eval --json`, or answers"
                    ))
                };
                let baseline = Baseline::new(rows, &report.rows, args.seed).ok_or_else(nothing)?;
                passed &= !baseline.is_worse();
                report.baseline = Some(baseline);
            }
            for gate in &args.min {
                match gate.check(report) {
                    Ok(checked) => report.gates.push(checked),
                    Err(message) => unchecked = unchecked.or(Some(Failed::usage(message))),
                }
            }
            passed &= report.gates.iter().all(|gate| gate.ok);
        }
        let failures = self.notes.failures;
        let notes = self.notes.finish();
        reports.first_mut().into_iter().for_each(|first| first.notes.clone_from(&notes));
        let comparison = Comparison::new(reports, args.seed);
        if let Some(path) = &args.html {
            fs::write(path, page(&comparison, &files::name(&args.gold)))
                .map_err(|error| Failed::usage(format!("cannot write {}: {error}", path.display())))?;
        }
        match comparison.configurations.as_slice() {
            [report] => output::either(args.json, report, || words::report(report))?,
            _ => output::either(args.json, &comparison, || words::comparison(&comparison))?,
        }
        if let Some(failed) = calibrated.or(unchecked) {
            return Err(failed);
        }
        Ok(Status::of(passed && (failures == 0 || args.allow_failures)))
    }
}

/// Returns the text by which an id is matched. A number and its text are the same id, because CSV has texts alone.
fn id_text(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}

/// Returns the digest by which an id is found. Of a million ids, two have the same digest with a probability of 1 to 37 million.
fn digest(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

/// A baseline.
enum Earlier {
    /// The result of an earlier evaluation.
    Rows(Rows),
    /// Other answers to the same gold.
    Answers(Box<(Answers, Evaluation)>),
}

/// A result of `--json`.
#[derive(Deserialize)]
#[serde(untagged)]
enum EarlierResult {
    One(Box<Report>),
    Several { configurations: Vec<IgnoredAny> },
}

impl Earlier {
    fn read(path: &Path, profile: Profile) -> Result<Self, Failed> {
        if path == Path::new("-") {
            return Err(Failed::usage("the baseline cannot be standard input: name a file"));
        }
        // Rows of answers are no report, which is known after the first of them.
        let file = fs::File::open(path)
            .map_err(|error| Failed::usage(format!("cannot read {}: {error}", files::name(path))))?;
        let refused = |why: String| Failed::usage(format!("{}: {why}", files::name(path)));
        match serde_json::from_reader::<_, EarlierResult>(BufReader::new(file)) {
            Ok(EarlierResult::One(report)) if report.profile == profile => {
                return Ok(Self::Rows(report.rows));
            }
            Ok(EarlierResult::One(report)) => {
                let name = |profile| serde_json::to_value(profile).unwrap_or_default();
                return Err(refused(format!(
                    "the baseline was scored by the profile {}, and this evaluation by {}: use one of them",
                    name(report.profile),
                    name(profile)
                )));
            }
            Ok(EarlierResult::Several { configurations }) => {
                return Err(refused(format!(
                    "the baseline is the result of {} configurations: name a result of one",
                    configurations.len()
                )));
            }
            Err(_) => {}
        }
        Ok(Self::Answers(Box::new((Answers::open(path, None, None)?, Evaluation::new(profile)))))
    }

    fn rows(self, seed: u64) -> Rows {
        match self {
            Self::Rows(rows) => rows,
            Self::Answers(earlier) => earlier.1.report(seed).rows,
        }
    }
}

/// The compiled schemas of earlier rows, because rows often repeat schemas.
#[derive(Default)]
struct Schemas(HashMap<String, Result<Arc<Compiled>, String>>);

impl Schemas {
    /// Returns why a value does not satisfy a schema.
    fn violation(&mut self, schema: &Value, value: &Value) -> Option<String> {
        let key = schema.to_string();
        if self.0.len() > 64 && !self.0.contains_key(&key) {
            self.0.clear();
        }
        let compile = || compile_with(schema, Formats::Annotate).map_err(|error| error.to_string());
        match self.0.entry(key).or_insert_with(compile) {
            Err(error) => Some(format!("cannot be checked: {error}")),
            Ok(compiled) => {
                let mut report = formwork_core::Report::default();
                compiled.validate(value, &Context::EMPTY, &mut report);
                let invalid = (!report.is_empty()).then(|| RowError::from(report));
                invalid.map(|invalid| format!("violates its schema: {}", invalid.message()))
            }
        }
    }
}
