//! `formwork shape run`: generates JSON of a shape from an input.

use std::path::{Path, PathBuf};

use formwork::config::Defaults;
use formwork::providers::Providers;
use formwork_core::Error;
use formwork_extract::CancellationToken;
use formwork_json::{Level, read};
use formwork_shape::{Shape, ShapeRunner, ShapeRunnerBuilder};
use serde_json::Value;

use super::attempts::Attempts;
use crate::commands::extract::{one, seconds, temperature};
use crate::exit::{Failed, Status};
use crate::ledger::Recording;
use crate::targets::Targets;
use crate::{files, interrupt};

const AFTER_HELP: &str = "\
Examples:
  formwork shape run --shape feature-design.shape --input feature-design-input.json
  formwork shape run --shape plan.shape --input notes.txt --task \"Plan the next week.\" -v
  formwork shape run --shape plan.shape --input - --provider ollama --model qwen3:8b < notes.txt

The model has three attempts. Each attempt receives all errors of the previous one. Every attempt is logged on standard
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
    /// The shape of the output
    #[arg(long, short)]
    pub(super) shape: Option<PathBuf>,
    /// The input: a .json file is read as JSON, any other as text; `-` is standard input
    #[arg(long, short)]
    input: PathBuf,
    /// The task: what to do with the input
    #[arg(long)]
    task: Option<String>,
    #[command(flatten)]
    targets: Targets,
    /// Sampling temperature from 0 to 2; 0 selects the most likely token [default: that of the model]
    #[arg(long, short, value_parser = temperature)]
    temperature: Option<f64>,
    /// Sampling seed: the same seed repeats the same answer, if the provider supports it [default: none]
    #[arg(long)]
    seed: Option<u64>,
    /// Maximum number of tokens of an answer [default: none for hosted models; the rest of the context, up to 8192, for
    /// self-hosted servers; 512 for tiny models]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: Option<u32>,
    /// Time limit in seconds for all attempts together [default: 300]
    #[arg(long, value_parser = seconds)]
    timeout: Option<f64>,
    /// Print the value with all attempts as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    recording: Recording,
    /// Print every request, answer and edit on standard error
    #[arg(long, short)]
    verbose: bool,
}

pub(super) fn run(args: &Args, shape: Shape, providers: &Providers) -> Result<Status, Failed> {
    if let Some(path) = &args.shape {
        files::one_standard_input(&[path, &args.input])?;
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
    let recorder = opened.recorder(ledger, "shape run");
    let own = Defaults {
        max_attempts: Some(formwork_shape::policy().attempts),
        timeout_seconds: Some(300.0),
        ..Defaults::default()
    };
    let flags = Defaults {
        max_tokens: args.max_tokens,
        timeout_seconds: args.timeout,
        temperature: args.temperature,
        ..Defaults::default()
    };
    let settings = flags.or(opened.defaults).or(own);
    let policy = settings.limit(formwork_shape::policy());
    let builder = ShapeRunner::builder(shape).with_observer(Attempts { max: policy.attempts });
    let mut builder = opened.backends.into_iter().fold(builder, ShapeRunnerBuilder::with_target);
    if let Some(recorder) = recorder {
        builder = builder.with_observer(recorder);
    }
    if let Some(task) = &args.task {
        builder = builder.with_task(task);
    }
    builder = builder.settings(|mut extractor| {
        extractor = settings.apply(extractor).with_policy(policy);
        if let Some(temperature) = settings.temperature {
            extractor = extractor.with_temperature(temperature);
        }
        if let Some(seed) = args.seed {
            extractor = extractor.with_seed(seed);
        }
        extractor
    });
    let runner = builder.build().map_err(|error| failed(&error))?;
    let output = one::Output { verbose: args.verbose, json: args.json };
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
    let whole =
        read(&text, Level::Strict).ok().and_then(|reading| reading.into_candidates().into_iter().next());
    Ok(whole.map_or(Value::String(text), |candidate| candidate.value))
}

/// Returns an error with the exit code of its kind. The attempts were printed before.
fn failed(error: &Error) -> Failed {
    Failed::of(error.kind(), error.is_answered(), error)
}
