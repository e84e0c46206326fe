//! `formwork shape run`: generates JSON of a shape from an input.

use std::path::{Path, PathBuf};

use formwork::providers::Providers;
use formwork_core::Error;
use formwork_extract::{CancellationToken, ExtractorBuilder};
use formwork_shape::{Shape, ShapeRunner, ShapeRunnerBuilder};
use serde_json::Value;

use super::attempts::Attempts;
use crate::commands::extract::one;
use crate::exit::{Failed, Status};
use crate::flags::{Sampling, seconds, set, usual};
use crate::ledger::Recording;
use crate::targets::Targets;
use crate::{files, interrupt};

const AFTER_HELP: &str = "\
Examples:
  formwork shape run --shape feature-design.shape --input feature-design-input.json
  formwork shape run --shape plan.shape --input notes.txt --task \"Plan the next week.\" -v
  formwork shape run -s \"title, steps: [{what, minutes: int}]\" --input notes.txt --max-retries 1
  formwork shape run --shape plan.shape --input - --provider ollama --model qwen3:8b < notes.txt

The model has three attempts (--max-retries changes this). Each attempt receives all errors of the previous one. Every attempt is logged on standard
error.

Exit codes:
  0    the value is printed
  1    no answer had the shape
  2    wrong usage, or an invalid shape or file
  3    no provider answered in time, or the model cannot be opened
  130  interrupted";

/// Generate JSON of a shape with a model
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The shape of the output, as a file or as text, or a list of fields such as "name, age: int"
    #[arg(long, short)]
    pub(super) shape: Option<String>,
    /// The input: a .json file is read as JSON, any other as text; `-` is standard input
    #[arg(long, short)]
    input: PathBuf,
    /// The task: what to do with the input
    #[arg(long)]
    task: Option<String>,
    #[command(flatten)]
    targets: Targets,
    #[command(flatten)]
    sampling: Sampling,
    /// Maximum number of attempts after the first, each with all errors of the last answer [default: 2]
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=99))]
    max_retries: Option<u32>,
    /// Time limit in seconds for all attempts together [default: 300]
    #[arg(long, value_parser = seconds)]
    timeout: Option<f64>,
    /// Print the value with all calls as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    recording: Recording,
    /// Print every request, answer and edit on standard error
    #[arg(long, short)]
    verbose: bool,
}

pub(super) fn run(args: &Args, shape: Shape, providers: &Providers) -> Result<Status, Failed> {
    if let Some(shape) = &args.shape {
        files::one_standard_input(&[Path::new(shape), &args.input])?;
    }
    let input = input(&args.input)?;
    let cancel = CancellationToken::new();
    interrupt::run(&cancel, ask(args, providers, shape, &input, &cancel))
}

async fn ask(
    args: &Args,
    providers: &Providers,
    shape: Shape,
    input: &Value,
    cancel: &CancellationToken,
) -> Result<Status, Failed> {
    let ledger = args.recording.open()?;
    let opened = args.targets.open(providers, args.verbose).await?;
    opened.say_how_small_the_default_model_is();
    let recorder = opened.recorder(ledger, "shape run");
    let own = usual(formwork_shape::policy().attempts, None, 300.0);
    let flags = args.sampling.defaults(args.max_retries.map(|retries| retries + 1), args.timeout);
    let settings = flags.or(opened.defaults.clone()).or(own);
    let policy = settings.limit(formwork_shape::policy());
    let builder = ShapeRunner::builder(shape);
    let mut builder = opened.backends.into_iter().fold(builder, ShapeRunnerBuilder::with_target);
    builder = set(builder, args.task.as_ref(), ShapeRunnerBuilder::with_task);
    builder = builder.settings(|extractor| {
        let attempts = Attempts { max: policy.attempts };
        let extractor = settings.apply(extractor).with_policy(policy).with_observer(attempts);
        let extractor = set(extractor, recorder, ExtractorBuilder::with_observer);
        let extractor = set(extractor, settings.temperature, ExtractorBuilder::with_temperature);
        set(extractor, args.sampling.seed, ExtractorBuilder::with_seed)
    });
    let runner = builder.build().map_err(|error| failed(&error))?;
    let output =
        one::Output { verbose: args.verbose, json: args.json, stream: false, shown: None, doubt: None };
    one::run(runner.extraction(input), cancel, output, failed).await
}

/// Reads the input: JSON according to its name or its text, else a text.
fn input(path: &Path) -> Result<Value, Failed> {
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json")) {
        return files::json(path);
    }
    let text = files::text(path)?;
    if text.trim().is_empty() {
        return Err(Failed::usage(format!("{}: the input is empty", files::name(path))));
    }
    files::json_or_text(&files::name(path), text)
}

/// Returns an error with the exit code of its kind. The attempts were printed before.
fn failed(error: &Error) -> Failed {
    Failed::of(error.kind(), error.is_answered(), error)
}
