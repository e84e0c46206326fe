//! `formwork extract`: a schema and a text in, valid JSON out.

pub(crate) mod one;
pub(crate) mod report;
mod rows;
mod schema;

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use formwork::config::Defaults;
use formwork::providers::Providers;
use formwork_core::{Error, ErrorKind, Input};
use formwork_extract::{CancellationToken, Extraction, Extractor, ExtractorBuilder};
use formwork_ledger::Ledger;
use serde_json::Value;

use self::schema::Given;
use crate::exit::{Failed, Status};
use crate::ledger::Recording;
use crate::stderr::say;
use crate::targets::{Opened, Targets};
use crate::{files, interrupt, rules};

const AFTER_HELP: &str = "\
Examples:
  formwork extract --schema person.schema.json \"Maria Lindqvist, 34, moved to Lisbon last spring.\"
  formwork extract -s \"name, age: int\" \"Maria Lindqvist, 34, moved to Lisbon last spring.\"
  formwork extract -s person.schema.json --file letter.txt --json
  cat letter.txt | formwork extract -s person.schema.json -v --max-attempts 3
  formwork extract -s person.schema.json --model qwen2.5-0.5b-instruct-q8_0.gguf --temperature 0.2 --seed 7 \"...\"
  formwork extract -s person.schema.json --provider ollama --model qwen3:8b \"...\"
  formwork extract -s person.schema.json --config production.toml --provider backup \"...\"
  formwork extract -s person.schema.json --jsonl --concurrency 4 --file rows.jsonl
      rows: {\"id\", \"input\", \"schema\"?} -> {\"id\", \"ok\", \"value\"?, \"error\"?, \"attempts\", \"usage\", ...}

Without a configuration the model runs in this process and needs no network once its weights are here (`formwork
models`). The default one keeps to any schema and knows little; --model takes the path of any llama- or qwen2-family GGUF
file. A formwork.toml names other providers, which `formwork doctor` tries:

  targets = [\"primary\"]
  [providers.primary]
  kind = \"ollama\"
  model = \"qwen3:8b\"

Exit codes:
  0    the value is printed (with --jsonl: that of each row)
  1    no valid answer (with --jsonl: for one row or more, unless --allow-failures)
  2    wrong usage, or a schema or file that cannot be used
  3    no provider answered (in time), or the model cannot be opened
  130  interrupted";

/// Get valid JSON for a text out of a model
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The text; without it and without --file it is read from standard input
    text: Option<String>,
    /// The schema of the answer: a file with JSON Schema (JSON or YAML) or a shape, the text of one, or a list of fields such
    /// as "name, age: int"
    #[arg(long, short, required_unless_present = "jsonl")]
    schema: Option<String>,
    /// Rules that the answer keeps to, beside those in the schema's `x-formwork-rules`; see `formwork check --help`
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// A file with the text (with --jsonl: the rows); `-` is standard input
    #[arg(long, short, conflicts_with = "text")]
    file: Option<PathBuf>,
    /// Text for the model before the input
    #[arg(long)]
    system: Option<String>,
    #[command(flatten)]
    targets: Targets,
    /// How freely tokens are chosen: 0 takes the likeliest; it falls by a third with each attempt [default: 0.3]
    #[arg(long, short, value_parser = temperature)]
    temperature: Option<f64>,
    /// Makes the answer repeatable; another seed, another answer
    #[arg(long)]
    seed: Option<u64>,
    /// How often the model may try [default: 3]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100))]
    max_attempts: Option<u32>,
    /// How many of these attempts one provider gets [default: max-attempts divided by the number of
    /// providers, rounded up]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100))]
    attempts_per_target: Option<u32>,
    /// The most tokens of an answer [default: none for hosted models; for servers of one's own what the context leaves, at
    /// most 8192; 512 for tiny models]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: Option<u32>,
    /// Seconds for each input, all attempts together [default: 120]
    #[arg(long, value_parser = seconds)]
    timeout: Option<f64>,
    /// Print the value with its history as one JSON object
    #[arg(long, conflicts_with = "jsonl")]
    json: bool,
    /// Read JSON Lines, an object with `id`, `input` and perhaps `schema` a line, and answer each with a line, in order
    #[arg(long, conflicts_with = "text")]
    jsonl: bool,
    /// Exit with 0 although rows failed (takes --jsonl)
    #[arg(long, requires = "jsonl", conflicts_with = "text")]
    allow_failures: bool,
    /// How many rows are asked for at a time
    // The text as well: clap waives what an argument requires where something else excludes that.
    #[arg(long, default_value_t = 1, requires = "jsonl", conflicts_with = "text")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    concurrency: u16,
    #[command(flatten)]
    recording: Recording,
    /// Say what was asked, what came back, what was wrong with it and what is asked next
    #[arg(long, short)]
    verbose: bool,
}

pub(crate) fn temperature(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|value| (0.0..=2.0).contains(value))
        .ok_or_else(|| "expected a number from 0 to 2".to_owned())
}

pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|value| (0.001..=86_400.0).contains(value))
        .ok_or_else(|| "expected seconds, from 0.001 to 86400".to_owned())
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
    let Some(argument) = &args.schema else { return Err(Failed::usage("--schema is missing")) };
    let text_file = args.text.is_none().then(|| source(args));
    let inputs: Vec<&Path> =
        [Path::new(argument)].into_iter().chain(args.rules.as_deref()).chain(text_file).collect();
    files::one_standard_input(&inputs)?;
    let rules = args.rules.as_deref().map(rules::of_file).transpose()?.unwrap_or_default();
    let Given { name, usable } = schema::given(argument, &rules)?;
    let text = text(args)?;
    if let Some(file) = args.text.as_deref().and_then(schema::named_file) {
        let file = file.display();
        say!("note: {file} is a file, and the text is only its name: to read the file, write --file {file}");
    }
    let asks = Asks::new(args, providers).await?;
    let extractor = asks.extractor(usable).map_err(|error| failed(&error, Some(&name)))?;
    let telling = one::Telling { verbose: args.verbose, json: args.json };
    let extraction = asks.extraction(&extractor, text, Some(&name));
    one::run(extraction, cancel, telling, |error| failed(error, Some(&name))).await
}

/// The text that the command line means.
fn text(args: &Args) -> Result<String, Failed> {
    let text = match (&args.text, &args.file) {
        (Some(text), _) => text.clone(),
        (None, None) if io::stdin().is_terminal() => {
            return Err(Failed::usage(
                "there is no text: give it as an argument, with --file, or on standard input",
            ));
        }
        (None, _) => files::text(source(args))?,
    };
    if text.trim().is_empty() {
        return Err(Failed::usage(EMPTY));
    }
    Ok(text)
}

/// Where the text or the rows come from, if they are no argument.
fn source(args: &Args) -> &Path {
    args.file.as_deref().unwrap_or(Path::new("-"))
}

const EMPTY: &str = "the text is empty: there is nothing to extract from";

/// The common part of all inputs of a command.
struct Asks<'a> {
    args: &'a Args,
    opened: Opened,
    ledger: Option<Ledger>,
}

impl<'a> Asks<'a> {
    async fn new(args: &'a Args, providers: &Providers) -> Result<Self, Failed> {
        let ledger = args.recording.open()?;
        Ok(Self { args, opened: args.targets.open(providers, args.verbose).await?, ledger })
    }

    /// Returns what is to be done for one input: a run that is recorded, if there is a ledger. A schema has a name if it does not come
    /// with a row.
    fn extraction(
        &self,
        extractor: &Extractor<Value>,
        input: String,
        name: Option<&str>,
    ) -> Extraction<Value> {
        let extraction = extractor.extraction(Input::from(input));
        let Some(recorder) = self.opened.recorder(self.ledger.clone(), "extract") else { return extraction };
        let digest = extractor.plan().contract().digest();
        extraction.with_observer(recorder.with_contract(name.map(str::to_owned), Some(digest)))
    }

    fn extractor(&self, usable: schema::Usable) -> Result<Extractor<Value>, Error> {
        let args = self.args;
        let schema::Usable { schema, rules, .. } = usable;
        let own = Defaults {
            max_attempts: Some(3),
            temperature: Some(0.3),
            timeout_seconds: Some(120.0),
            ..Defaults::default()
        };
        let flags = Defaults {
            max_attempts: args.max_attempts,
            attempts_per_target: args.attempts_per_target,
            temperature: args.temperature,
            max_tokens: args.max_tokens,
            timeout_seconds: args.timeout,
        };
        let builder = flags.or(self.opened.defaults).or(own).apply(Extractor::for_document("answer", schema));
        let builder = builder.with_rules(rules);
        let mut builder = self.opened.backends.iter().cloned().fold(builder, ExtractorBuilder::with_target);
        if let Some(seed) = args.seed {
            builder = builder.with_seed(seed);
        }
        if let Some(system) = &args.system {
            builder = builder.with_system(system);
        }
        builder.build()
    }
}

/// An error with the exit code of its kind; `{:#}` lists the attempts.
fn failed(error: &Error, schema: Option<&str>) -> Failed {
    match (error.kind(), schema) {
        (ErrorKind::Schema, Some(name)) => Failed::usage(format!("{name}: {error}")),
        (ErrorKind::Schema | ErrorKind::Config, _) => Failed::usage(error),
        (kind, _) => Failed::of(kind, error.is_answered(), format!("{error:#}")),
    }
}
