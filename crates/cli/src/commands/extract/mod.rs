//! `formwork extract`: extracts valid JSON from a text.

pub(crate) mod one;
pub(crate) mod report;
mod rows;
pub(crate) mod schema;
mod store;
mod stream;

use std::collections::HashMap;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use formwork::config::{Defaults, Places};
use formwork::providers::Providers;
use formwork_batch::{Answers, Question as AskedQuestion};
use formwork_core::evidence::Question;
use formwork_core::{Error, ErrorKind, Input, Outcome, PathPattern, Rule};
use formwork_extract::{Backend, CancellationToken, Ensemble, Extraction, Extractor, ExtractorBuilder};
use formwork_ledger::{Ledger, Recorder};
use serde_json::{Value, json};

use self::one::{Doubt, Shown};
use self::schema::{Given, Marks};
use self::store::Begun;
use crate::argument::Source;
use crate::commands::eval::calibration;
use crate::exit::{Failed, Status};
use crate::flags::{Sampling, one_of, seconds, set, usual, within};
use crate::ledger::Recording;
use crate::rules::Placed;
use crate::stderr::say;
use crate::targets::{Opened, Targets};
use crate::{files, interrupt, rules};

const AFTER_HELP: &str = "\
Examples:
  formwork extract --schema person.schema.json \"Maria Lindqvist, 34, moved to Lisbon last spring.\"
  formwork extract -s \"name, age: int\" \"Maria Lindqvist, 34, moved to Lisbon last spring.\"
  formwork extract -s person.schema.json --file letter.txt --json
  formwork extract -s person.schema.json --file letter.txt --evidence --grounded='$.name'
  formwork extract -s \"items: [{name, count: int}]\" --file order.txt --stream
  formwork extract -s person.schema.json --file letter.txt --html letter.html
  formwork extract -s person.schema.json --file letter.txt --ensemble openai/gpt-5.4-mini,ollama/qwen3:8b --flag-below 0.6
  formwork extract -s person.schema.json --file letter.txt --evidence=quote
  cat letter.txt | formwork extract -s person.schema.json -v --max-attempts 3
  formwork extract --contract person.yaml \"...\"
  formwork extract -s person.schema.json --model qwen2.5-0.5b-instruct-q8_0.gguf --temperature 0.2 --seed 7 \"...\"
  formwork extract -s person.schema.json --provider ollama --model qwen3:8b \"...\"
  formwork extract -s person.schema.json -m openai/gpt-5.4-mini --set effort=low --set prompt_cache=on \"...\"
  formwork extract -s person.schema.json --config production.toml --provider backup \"...\"
  formwork extract -s person.schema.json --store answers.db --file letter.txt
  formwork extract -s person.schema.json --jsonl --concurrency 4 --file rows.jsonl
      rows: {\"id\", \"input\", \"schema\"?} -> {\"id\", \"ok\", \"value\"?, \"error\"?, \"calls\", \"usage\", \"cost\", ...}

Without a configuration, a small local model answers. It needs no network after the download of its weights (`formwork
models`). Its answers always satisfy the schema, but it knows little. --model loads any GGUF file of the llama or qwen2 family.
A formwork.toml configures other providers, and `formwork doctor` tests them:

  targets = [\"primary\"]
  [providers.primary]
  kind = \"ollama\"
  model = \"qwen3:8b\"

Exit codes:
  0    the value is printed (with --jsonl: for each row)
  1    no valid answer, or the text does not state a required value (--json: class `not_stated`; see --may-be-absent)
       (with --jsonl: for a row, unless --allow-failures)
  2    wrong usage, or an invalid schema or file
  3    no provider answered in time, or the model cannot be opened
  130  interrupted";

/// The sampling temperature of the first attempt.
const TEMPERATURE: f64 = 0.3;

const TEMPERATURE_HELP: &str = "Sampling temperature of the first attempt, from 0 to 2; later attempts use 2/3 and 1/3 of it [default: 0.3]";

/// Extract valid JSON from a text with a model
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP, mut_arg("temperature", |temperature| temperature.help(TEMPERATURE_HELP)))]
pub(crate) struct Args {
    /// The text [default: --file, else standard input]. The name of a file, `-`, `@FILE` and a URL are errors: see --file and --text
    #[arg(value_name = "TEXT")]
    argument: Option<String>,
    /// The text, taken literally even if it names a file
    #[arg(long, conflicts_with_all = ["argument", "file"], allow_hyphen_values = true)]
    text: Option<String>,
    /// The schema of the answer: JSON Schema (JSON or YAML) or a shape, as a file or as text, or a list of fields such
    /// as "name, age: int"
    #[arg(long, short, required_unless_present_any = ["jsonl", "contract"])]
    schema: Option<String>,
    /// File with a contract in the place of --schema: YAML with schema, rules, instructions and examples, a JSON Schema, or a
    /// shape, as for `formwork batch` and `formwork serve`
    #[arg(long, short, value_name = "FILE", conflicts_with = "schema")]
    contract: Option<PathBuf>,
    /// Accept any JSON value, for a schema that constrains none, such as {} or true
    #[arg(long)]
    any: bool,
    /// File with rules for the answer, in addition to those in `x-formwork-rules` of the schema; see `formwork check --help`
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    #[command(flatten)]
    marks: Marks,
    /// Reject values that do not stand in the text (the rule `grounded`): all texts and numbers, or those at PATH (such as
    /// `$.items[*].name`; repeatable). A correction names the most similar text
    #[arg(long, value_name = "PATH", num_args = 0..=1, require_equals = true, default_missing_value = "$")]
    grounded: Vec<PathPattern>,
    /// File with the text (with --jsonl: the rows); `-` is standard input
    #[arg(long, short, conflicts_with = "argument")]
    file: Option<PathBuf>,
    /// System prompt, which describes the task to the model
    #[arg(long)]
    system: Option<String>,
    #[command(flatten)]
    targets: Targets,
    #[command(flatten)]
    sampling: Sampling,
    /// Maximum number of attempts [default: 3]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100))]
    max_attempts: Option<u32>,
    /// Maximum number of attempts of one provider [default: max-attempts divided by the number of
    /// providers, rounded up]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100))]
    attempts_per_target: Option<u32>,
    /// Time limit in seconds for each input, all attempts together [default: 120]
    #[arg(long, value_parser = seconds)]
    timeout: Option<f64>,
    /// Print the value with all calls as one JSON object
    #[arg(long, conflicts_with = "jsonl")]
    json: bool,
    /// Print every event as one line of JSON as it comes: `started`, `partial` (the document so far), `item` (an item of a list that
    /// has ended and is valid), `replaced` (an item that no longer stands), `asking`, and `done` or `error` with the members of --json
    #[arg(long, conflicts_with_all = ["jsonl", "json", "ensemble"])]
    stream: bool,
    /// Read one JSON object per line with `id`, `input` and optionally `schema`, and print one result per line, in order
    #[arg(long, conflicts_with_all = ["argument", "text"])]
    jsonl: bool,
    /// Print the place of each value in the text on standard error; with --jsonl, add it to the rows (--json always has it), see
    /// `formwork evidence --help`. `--evidence=quote` asks for verbatim quotes of the values that were not found, in one more call
    #[arg(long, value_name = "quote", num_args = 0..=1, require_equals = true, default_missing_value = "find")]
    #[arg(value_parser = one_of::<Places, 2>(["find", "quote"]), hide_possible_values = true)]
    evidence: Option<Places>,
    /// Ask each of these targets (KIND/MODEL, or a provider of the configuration), and merge their answers value by value. A name that is
    /// repeated is asked for one more sample, with another seed. In one more call, the first target chooses between the candidates of values on which they differ; `disputed` of --json lists the undecided ones
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',', conflicts_with_all = ["jsonl", "model", "provider"])]
    ensemble: Vec<String>,
    /// Ask the targets after the first one only if a value of its answer has a confidence below X, from 0 to 1
    #[arg(long, value_name = "X", value_parser = share, requires = "ensemble")]
    second_opinion_below: Option<f64>,
    /// Mark values whose confidence is below X, from 0 to 1, on standard error and in `confidence` of --json and of the rows
    #[arg(long, value_name = "X", value_parser = share)]
    flag_below: Option<f64>,
    /// File of `formwork eval --calibrate`, by which the confidence is a probability [default: `calibration` of the configuration].
    /// Without it, it is a score that orders values
    #[arg(long, value_name = "FILE")]
    calibration: Option<PathBuf>,
    /// Write a page with the text, in which the places of the values are marked, and the values beside it
    #[arg(long, value_name = "FILE", conflicts_with = "jsonl")]
    html: Option<PathBuf>,
    /// Exit with 0 even if rows failed (requires --jsonl)
    #[arg(long, requires = "jsonl", conflicts_with_all = ["argument", "text"])]
    allow_failures: bool,
    /// Maximum number of rows in progress at a time
    // The texts are listed too, because clap ignores `requires` if the required argument conflicts with a present one.
    #[arg(long, default_value_t = 1, requires = "jsonl", conflicts_with_all = ["argument", "text"])]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    concurrency: u16,
    #[command(flatten)]
    recording: Recording,
    /// Use the answers of this file, and store calls and answers in it, as `formwork batch` does: a stored value for the same question
    /// about the same text is printed without a call, if it satisfies the schema [default: no store]
    #[arg(long, value_name = "FILE", conflicts_with = "ensemble")]
    store: Option<PathBuf>,
    /// Print every request, answer, violation and retry on standard error
    #[arg(long, short)]
    verbose: bool,
}

pub(crate) fn run(args: &Args, providers: &Providers) -> Result<Status, Failed> {
    let cancel = CancellationToken::new();
    interrupt::run(&cancel, async {
        if args.jsonl {
            rows::run(args, providers, &cancel).await
        } else {
            one(args, providers, &cancel).await
        }
    })
}

async fn one(args: &Args, providers: &Providers, cancel: &CancellationToken) -> Result<Status, Failed> {
    let text_file = args.argument.as_ref().or(args.text.as_ref()).is_none().then(|| source(args));
    let schema_file = args.schema.as_deref().map(Path::new);
    let inputs: Vec<&Path> = schema_file.into_iter().chain(args.rules.as_deref()).chain(text_file).collect();
    files::one_standard_input(&inputs)?;
    let rules = args.rules.as_deref().map(rules::of_file).transpose()?.unwrap_or_default();
    let given = given(args, &rules, providers)?;
    let Given { name, usable } =
        given.ok_or_else(|| Failed::usage("there is no schema: name one with --schema or --contract"))?;
    let own = usable.evidence;
    args.html.as_deref().map_or(Ok(()), files::can_be_written)?;
    let text = text(args)?;
    if args.ensemble.iter().any(|name| name.trim().is_empty()) {
        return Err(Failed::usage(
            "--ensemble: the name of a target is empty: name targets with commas between",
        ));
    }
    if args.ensemble.len() == 1 {
        return Err(Failed::usage("--ensemble: name at least two targets, with commas between"));
    }
    let of = |error: &Error| failed(error, Some(&name));
    let (mut asked, mut defaults) = (Vec::new(), Defaults::default());
    let mut known: Vec<(String, Requests<'_>, Extractor<Value>)> = Vec::new();
    for (target, targets) in args.targets.split(&args.ensemble) {
        if !known.iter().any(|(other, ..)| *other == target) {
            let requests = Requests::of(args, &targets, providers).await?;
            let extractor = requests.extractor(usable.clone()).map_err(|error| of(&error))?;
            defaults = defaults.or(requests.opened.defaults.clone());
            known.push((target.clone(), requests, extractor));
        }
        let Some((_, requests, extractor)) = known.iter().find(|(other, ..)| *other == target) else {
            continue;
        };
        let mut input = Input::from(text.clone());
        let earlier = asked.iter().filter(|(other, _)| *other == target).count() as u64;
        if earlier > 0 {
            // With one seed, the samples of a target are the same answer; the default seed of a model in process is constant.
            input.seed = Some(args.sampling.seed.unwrap_or_default().wrapping_add(earlier));
            if requests.temperature() == 0.0 {
                say!("warning: --ensemble: at temperature 0, the samples of `{target}` are the same answer");
            }
        }
        asked.push((target, requests.extraction(extractor, input, Some(&name))));
    }
    let requests = match asked.is_empty() {
        true => Some(Requests::new(args, providers).await?),
        false => None,
    };
    let defaults = requests.as_ref().map_or(defaults, |requests| requests.opened.defaults.clone());
    let evidence = args.evidence.or(own).or(defaults.evidence);
    let single = requests.as_ref().map(|requests| requests.asks(usable)).transpose();
    let single = single.map_err(|error| of(&error))?;
    let title = args.file.as_deref().filter(|file| *file != Path::new("-"));
    let title = title.map_or_else(|| name.clone(), |file| file.display().to_string());
    let input = (evidence.is_some() || args.html.is_some()).then(|| text.clone());
    let shown = input.as_deref().map(|text| Shown {
        text,
        title: &title,
        table: evidence.is_some(),
        html: args.html.as_deref(),
    });
    let of_single = single.as_ref().map(|asks| &asks.extractor);
    let extractor = of_single.or(known.first().map(|(_, _, extractor)| extractor));
    let Some(extractor) = extractor.cloned() else { return Err(Failed::usage("no target was named")) };
    let doubt = doubt(args, &defaults);
    let output = one::Output { verbose: args.verbose, json: args.json, stream: args.stream, shown, doubt };
    let started = Instant::now();
    let shown = match requests.zip(single) {
        Some((requests, asks)) => {
            let mut result = match requests.begin(&asks, text, Some(&name)).map_err(|error| of(&error))? {
                Begun::Stored(outcome) => Ok(*outcome),
                Begun::Run(extraction, entry) => {
                    let result = one::answered(extraction, cancel, output).await?;
                    store::keep(entry, &result).await;
                    result
                }
            };
            if evidence == Some(Places::Quote) {
                requests.follow_up().quote(&mut result, started, cancel).await;
            }
            one::show(result, &[], Vec::new(), output, of)
        }
        None => {
            let arbiter = |name: &str| {
                let own = known.iter().find(|(target, ..)| target == name).or(known.first());
                own.map(|(_, requests, _)| requests.follow_up()).unwrap_or_default()
            };
            let ensemble = Ensemble::new(extractor.plan().contract(), &text, asked)
                .with_second_opinion_below(args.second_opinion_below)
                .with_arbiter(|question, name| arbiter(name).extraction(question, &text));
            let opinions = match ensemble.run(cancel).await {
                Ok(opinions) => opinions,
                Err(error) => return one::show(Err(error), &[], Vec::new(), output, of),
            };
            opinions.notes.iter().for_each(|note| say!("warning: {note}"));
            if opinions.answers.len() < args.ensemble.len()
                && defaults.calibrations.is_some()
                && opinions.outcome.confidence().iter().all(|it| it.probability.is_none())
            {
                say!("warning: the calibration is for answers of all targets: confidence is a score");
            }
            let mut result = Ok(opinions.outcome);
            if evidence == Some(Places::Quote) {
                arbiter(&opinions.first).quote(&mut result, started, cancel).await;
            }
            one::show(result, &opinions.answers, opinions.disputed, output, of)
        }
    }?;
    // Further calls that a signal ended cost the answer nothing.
    if cancel.is_cancelled() { Err(Failed::interrupted()) } else { Ok(shown) }
}

/// Returns the settings of the confidence, if the output has it.
fn doubt(args: &Args, defaults: &Defaults) -> Option<Doubt> {
    let doubts = args.flag_below.is_some() || defaults.calibrations.is_some() || !args.ensemble.is_empty();
    doubts.then_some(Doubt { flag_below: args.flag_below })
}

/// Returns an extraction whose events are printed if `verbose`.
fn reported(extraction: Extraction<Value>, verbose: bool) -> Extraction<Value> {
    if verbose { extraction.with_observer(report::Report) } else { extraction }
}

/// The targets of further calls about some values of an answer.
#[derive(Debug, Default)]
struct FollowUp {
    backends: Vec<Backend>,
    defaults: Defaults,
    recorder: Option<Recorder>,
    verbose: bool,
    store: Option<(Arc<Answers>, HashMap<String, String>)>,
}

impl FollowUp {
    fn extractor(&self, question: &Question) -> Result<Extractor<Value>, Error> {
        let builder = Extractor::for_document("values", question.schema().clone());
        let builder = self.defaults.apply(builder).with_system(question.instructions());
        self.backends.iter().cloned().fold(builder, ExtractorBuilder::with_target).build()
    }

    fn extraction(&self, question: &Question, text: &str) -> Result<Extraction<Value>, Error> {
        Ok(self.recorded(self.extractor(question)?.extraction(text.to_owned())))
    }

    /// Returns an extraction that is printed for `-v`, and recorded if there is a ledger.
    fn recorded(&self, extraction: Extraction<Value>) -> Extraction<Value> {
        let extraction = reported(extraction, self.verbose);
        match self.recorder.clone() {
            Some(recorder) => extraction.with_observer(recorder),
            None => extraction,
        }
    }

    /// Returns the answer to a question: that of the store, if it has one.
    async fn answer(
        &self,
        question: &Question,
        text: String,
        started: Instant,
        cancel: &CancellationToken,
    ) -> Result<Outcome<Value>, Error> {
        let extractor = self.extractor(question)?;
        let run = |text| {
            let extraction = extractor.extraction(text).with_elapsed(started.elapsed());
            self.recorded(extraction).with_cancel(cancel.clone())
        };
        let asked = self.store.as_ref().map(|(answers, models)| {
            let prompt = json!({"instructions": question.instructions()});
            (answers, AskedQuestion::of(&extractor).with_models(models.clone()).with_prompt_of(&prompt))
        });
        let Some((answers, asked)) = asked else { return run(text).run().await };
        match store::begun(answers, &asked, &extractor, text, run)? {
            Begun::Stored(outcome) => Ok(*outcome),
            Begun::Run(extraction, entry) => {
                let result = extraction.run().await;
                store::keep(entry, &result).await;
                result
            }
        }
    }

    /// Asks for quotes of the values that were not found, in the rest of the time since the first call. Without an answer, the evidence
    /// stays as it is.
    async fn quote(
        &self,
        result: &mut Result<Outcome<Value>, Error>,
        started: Instant,
        cancel: &CancellationToken,
    ) {
        let Ok(outcome) = result else { return };
        let Some(question) = outcome.unquoted() else { return };
        let text = outcome.source().to_owned();
        match self.answer(&question, text, started, cancel).await {
            Ok(answer) => {
                outcome.quote(&question, &answer.value);
                outcome.absorb(answer);
            }
            Err(error) => {
                outcome.absorb_failed(&error);
                say!("warning: there are no quotes: {error}");
            }
        }
    }
}

/// Parses a share.
fn share(text: &str) -> Result<f64, String> {
    within(text, 0.0..=1.0, "expected a number from 0 to 1")
}

/// Returns the schema or the contract of the command line.
fn given(args: &Args, rules: &[Placed], providers: &Providers) -> Result<Option<Given>, Failed> {
    match (&args.schema, &args.contract) {
        (Some(argument), _) => {
            schema::given(argument, &args.marks, rules, providers.rules(), args.any).map(Some)
        }
        (None, Some(file)) => {
            schema::of_contract(file, &args.marks, rules, providers.rules(), args.any).map(Some)
        }
        (None, None) => Ok(None),
    }
}

/// Returns the input text of the command line.
fn text(args: &Args) -> Result<String, Failed> {
    let text = match (&args.argument, &args.text) {
        (Some(argument), _) => match Source::named_by(argument) {
            Some(named) => return Err(Failed::usage(misplaced(argument, &named))),
            None => argument.clone(),
        },
        (None, Some(text)) => text.clone(),
        (None, None) if args.file.is_none() && io::stdin().is_terminal() => {
            return Err(Failed::usage(
                "there is no text: pass it as an argument, with --file, or on standard input",
            ));
        }
        (None, None) => files::text(source(args))?,
    };
    if text.trim().is_empty() {
        return Err(Failed::usage(EMPTY));
    }
    Ok(text)
}

/// Returns the message for an argument that names the source of the text, with the option to use.
fn misplaced(argument: &str, named: &Source) -> String {
    let literal = format!("--text {} for these characters as the text", shown(argument.trim()));
    match named {
        Source::File(file) if file == "-" => {
            format!(
                "the argument `{argument}` is not the text: write --file - for standard input, or {literal}"
            )
        }
        Source::File(file) => {
            let file = shown(file);
            format!(
                "the argument `{argument}` is not the text: write --file {file} for the contents of the file, or {literal}"
            )
        }
        Source::Url(url) => format!(
            "the argument `{argument}` is not the text, and no address is downloaded: write --file - after \
             `curl {url} |`, or {literal}"
        ),
    }
}

/// Returns a word as it is written in a shell.
fn shown(word: &str) -> String {
    if word.contains(char::is_whitespace) { format!("'{word}'") } else { word.to_owned() }
}

/// Returns the file of the text or the rows, if the text is not an argument.
fn source(args: &Args) -> &Path {
    args.file.as_deref().unwrap_or(Path::new("-"))
}

const EMPTY: &str = "the text is empty: there is nothing to extract from";

/// The targets and settings that all inputs of a command share.
struct Requests<'a> {
    args: &'a Args,
    opened: Opened,
    ledger: Option<Ledger>,
    store: Option<Arc<Answers>>,
}

impl<'a> Requests<'a> {
    async fn new(args: &'a Args, providers: &Providers) -> Result<Self, Failed> {
        Self::of(args, &args.targets, providers).await
    }

    async fn of(args: &'a Args, targets: &Targets, providers: &Providers) -> Result<Self, Failed> {
        let ledger = args.recording.open()?;
        let store = args.store.as_ref().map(Answers::open).transpose().map_err(Failed::usage)?.map(Arc::new);
        let mut opened = targets.open(providers, args.verbose).await?;
        let (name, others) = match args.ensemble.len() {
            0 => (targets.name(), 0),
            count => (calibration::MERGED, count),
        };
        calibration::open(&mut opened, args.calibration.as_deref(), name, others)?;
        opened.say_how_small_the_default_model_is();
        Ok(Self { args, opened, ledger, store })
    }

    /// Returns the same targets for further calls about some values.
    fn follow_up(&self) -> FollowUp {
        let flags = Defaults {
            temperature: self.args.sampling.temperature.or(Some(0.0)),
            timeout_seconds: self.args.timeout,
            max_attempts: Some(2),
            ..Defaults::default()
        };
        FollowUp {
            backends: self.opened.backends.clone(),
            defaults: flags.or(self.opened.defaults.clone()).or(usual(2, None, 120.0)),
            recorder: self.opened.recorder(self.ledger.clone(), "extract"),
            verbose: self.args.verbose,
            store: self.store.clone().map(|answers| (answers, self.opened.models())),
        }
    }

    /// Returns the extraction of one input, printed for `-v`, and recorded if there is a ledger. `name` is the name of the schema, unless the schema is
    /// part of a row.
    fn extraction(
        &self,
        extractor: &Extractor<Value>,
        input: impl Into<Input>,
        name: Option<&str>,
    ) -> Extraction<Value> {
        let extraction = reported(extractor.extraction(input), self.args.verbose);
        let Some(recorder) = self.opened.recorder(self.ledger.clone(), "extract") else { return extraction };
        let digest = extractor.plan().contract().digest();
        let name = name.map(str::to_owned);
        extraction.with_observer(recorder.with_run(|run| run.with_contract(name, Some(digest))))
    }

    /// Returns the sampling temperature of the first attempt.
    fn temperature(&self) -> f64 {
        self.args.sampling.temperature.or(self.opened.defaults.temperature).unwrap_or(TEMPERATURE)
    }

    fn extractor(&self, usable: schema::Usable) -> Result<Extractor<Value>, Error> {
        let (args, system) = (self.args, self.system(&usable));
        let schema::Usable { schema, unwrapped, rules, examples, .. } = usable;
        let mut flags = args.sampling.defaults(args.max_attempts, args.timeout);
        flags.attempts_per_target = args.attempts_per_target;
        let defaults = flags.or(self.opened.defaults.clone()).or(usual(3, Some(TEMPERATURE), 120.0));
        let builder = defaults.apply(Extractor::for_document("answer", schema));
        let policy = defaults.policy().filter(|_| !args.jsonl && self.opened.is_alone_on_loopback);
        // A server on this machine that is not running does not start while a person waits.
        let policy = policy.map(|policy| policy.with_leave_unreachable(true));
        let builder = set(builder, policy, ExtractorBuilder::with_policy);
        let grounded = args.grounded.iter().cloned().map(Rule::grounded);
        let builder =
            set(builder.with_rules(rules).with_rules(grounded), unwrapped, ExtractorBuilder::with_warning);
        let builder = if args.any { builder.with_any() } else { builder };
        let mut builder = self.opened.backends.iter().cloned().fold(builder, ExtractorBuilder::with_target);
        if args.jsonl {
            builder = builder.with_fail_fast();
        }
        builder = set(builder, args.sampling.seed, ExtractorBuilder::with_seed);
        builder = set(builder, system, ExtractorBuilder::with_system);
        for (input, output) in examples {
            builder = builder.with_example(input, output);
        }
        builder.build()
    }
}

/// Returns an error with the exit code of its kind. `{:#}` lists the calls.
fn failed(error: &Error, schema: Option<&str>) -> Failed {
    match (error.kind(), schema) {
        (ErrorKind::Schema, Some(name)) => Failed::usage(format!("{name}: {error}")),
        (ErrorKind::Schema | ErrorKind::Config, _) => Failed::usage(error),
        (kind, _) => Failed::of(kind, error.is_answered(), format!("{error:#}")),
    }
}
