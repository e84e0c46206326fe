//! `formwork batch`: processes many rows with durable results, so that an interrupted batch can be resumed.

pub(super) mod contract;
mod numbers;
mod provider;
mod restate;
mod session;
mod work;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use formwork::providers::Providers;
use formwork_batch::{BatchError, Control, MaxFailures, Stop, View};

use crate::exit::{Failed, Status};
use crate::flags::seconds;
use crate::output;
use crate::stderr::say;
use crate::targets::{Named, RetryArgs, dollars};

const EXITS: &str = "\
Exit codes:
  0    every row has a value (with --limit or --estimate: every processed row)
  1    at least one row was rejected (unless --allow-failures), the budget is exhausted, or too many rows were rejected
  2    wrong usage, a file that cannot be used, or a full disk
  3    no provider answered; the rows stay open
  130  interrupted, paused or cancelled; the rows stay open";

const GROUP_HELP: &str = "\
Examples:
  formwork batch run letters.jsonl --contract person.schema.json --out letters
  formwork batch status letters
  formwork batch resume letters
  formwork batch export letters > values.jsonl";

const RUN_HELP: &str = "\
Examples:
  formwork batch run letters.jsonl --contract person.schema.json --out letters
  formwork batch run letters.csv --contract person.yaml --out letters --config production.toml --concurrency 32
  formwork batch run tickets.tsv.gz --contract person.yaml --out tickets --id ticket --template 'Title: {{ title }}, text: {{ body }}'
  formwork batch run mails/ --contract \"$PWD/person.shape\" --out mails.batch --budget 5.00 --max-failures 2%
  formwork batch run letters.jsonl --contract person.schema.json --out letters --estimate 50
  formwork batch run letters.jsonl --contract person.schema.json --out letters --mode provider-batch
  formwork batch run letters.jsonl --contract person.schema.json --out letters --engine restate --ingress http://127.0.0.1:8080

Rows are JSON Lines ({\"id\": ..., \"input\": \"...\"}), a table with the columns `id` and `input` (or those of --id and --input), or a
folder of files. `batch export` repeats the other columns. The contract is a JSON Schema, a shape, or YAML with `schema`, `rules`, `instructions` and `examples`.

The folder receives part-*.jsonl with the values ({\"id\", \"value\", ...}), rejected-*.jsonl with the rows without a valid value and
their calls, and ledger.db with the rows. The answers are in the store (--store). If the process ends early, `formwork batch resume FOLDER` or the same `run` command
continues the batch.";

const RESUME_HELP: &str = "\
Examples:
  formwork batch resume letters
  formwork batch resume letters --config other.toml --concurrency 8

The options of the last `run`, `resume` or `retry` hold until others are named, except --limit, --estimate, --json and --verbose.";

const RETRY_HELP: &str = "\
Examples:
  formwork batch retry letters
  formwork batch retry letters --provider openai --model gpt-5.4";

const STATUS_EXITS: &str = "\
Exit codes:
  0    done
  2    wrong usage, or a folder without a batch";

/// Process many rows into valid values, stored in a folder; an interrupted batch can be resumed
#[derive(clap::Subcommand)]
#[command(after_help = GROUP_HELP)]
pub(crate) enum Command {
    /// Start a batch, or continue it
    #[command(after_help = format!("{RUN_HELP}\n\n{EXITS}"))]
    Run(RunArgs),
    /// Continue a batch that was interrupted, paused or limited
    #[command(after_help = format!("{RESUME_HELP}\n\n{EXITS}"))]
    Resume(ResumeArgs),
    /// Process the rejected rows again, and the open rows of a cancelled batch
    #[command(after_help = format!("{RETRY_HELP}\n\n{EXITS}"))]
    Retry(ResumeArgs),
    /// Print the progress of a batch
    #[command(after_help = format!("Examples:\n  formwork batch status letters\n  formwork batch status letters --json\n\n{STATUS_EXITS}"))]
    Status(StatusArgs),
    /// Print the progress of a batch repeatedly, until no process works on it
    #[command(after_help = format!("Examples:\n  formwork batch watch letters\n  formwork batch watch letters --json --interval 10\n\n{STATUS_EXITS}"))]
    Watch(WatchArgs),
    /// Pause a batch: its process finishes the rows in progress, and ends
    #[command(after_help = format!("Examples:\n  formwork batch pause letters\n\n{STATUS_EXITS}"))]
    Pause(FolderArgs),
    /// Cancel a batch: calls in flight are dropped, and open rows get no result
    #[command(after_help = format!("Examples:\n  formwork batch cancel letters\n\n{STATUS_EXITS}"))]
    Cancel(FolderArgs),
    /// Print all results as JSON Lines, or write them to a table, in the order of the rows
    #[command(after_help = format!("Examples:\n  formwork batch export letters > values.jsonl\n  formwork batch export letters --to letters.csv\n  formwork batch export letters --rejected --to rejected.jsonl\n\n{STATUS_EXITS}"))]
    Export(ExportArgs),
}

#[derive(clap::Args)]
pub(crate) struct RunArgs {
    /// The rows: a file with JSON Lines, CSV or TSV (also `.gz` or `.zst`), Parquet or Arrow, a folder of files, or `-` for JSON Lines
    /// on standard input
    #[arg(value_name = "INPUT")]
    source: PathBuf,
    /// The column of the ids, which are unique [default: id]
    #[arg(long, value_name = "COLUMN")]
    id: Option<String>,
    /// The column of the texts [default: input]
    #[arg(long, value_name = "COLUMN", conflicts_with = "template")]
    input: Option<String>,
    /// Write each text from the columns of its row, by a Jinja template such as 'Title: {{ title }}'
    #[arg(long, value_name = "TEMPLATE")]
    template: Option<String>,
    /// The contract of the values: a file with a JSON Schema or a shape, or YAML with schema, rules, instructions and examples
    #[arg(long, short, value_name = "FILE")]
    contract: PathBuf,
    /// The folder of the batch: a new folder, or that of the same batch to continue it
    #[arg(long, short, value_name = "DIR")]
    out: PathBuf,
    /// Process rows with the same input only once, and share the result
    #[arg(long)]
    dedupe: bool,
    /// Accept a schema that says nothing about values, such as `{}`: every JSON value is valid
    #[arg(long)]
    any: bool,
    /// Rows per file of results
    #[arg(long, value_name = "ROWS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    part_rows: u64,
    /// The file for the answers of a new batch, which batches share: rows with a valid answer to the same question take no call. Name
    /// DIR/store.db to keep the batch in one folder that can be moved [default: FORMWORK_STORE, else .formwork/store.db beside
    /// the configuration, else formwork/store.db in the user's data folder]
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    /// Take the rows of a changed input over: rows with the same id and text keep their results, others are processed
    #[arg(long)]
    new_rows: bool,
    /// Replace the contract of an existing batch, after a line says what it changes. Values that satisfy it stay, and earlier ones
    /// return; rows whose value violates it (with --yes), rejected rows and open rows are processed again
    #[arg(long)]
    new_contract: bool,
    /// Set the values aside that violate the contract of --new-contract or answer other instructions or examples; without it, such
    /// a command changes nothing
    #[arg(long, requires = "new_contract")]
    yes: bool,
    #[command(flatten)]
    work: WorkArgs,
}

#[derive(clap::Args)]
pub(crate) struct ResumeArgs {
    /// The folder of the batch
    folder: PathBuf,
    #[command(flatten)]
    work: WorkArgs,
}

/// Options of the processing of a batch.
#[derive(clap::Args)]
pub(crate) struct WorkArgs {
    #[command(flatten)]
    named: Named,
    /// The number of the sample: stored answers of another sample are not used, so each new number asks anew [default: 0]
    #[arg(long, value_name = "NUMBER")]
    sample: Option<u32>,
    /// Call models directly, or through the batch API of OpenAI or Anthropic, which costs half and takes up to a day for each
    /// round of calls [default: direct]
    #[arg(long, value_name = "MODE", value_enum)]
    mode: Option<Mode>,
    /// Maximum number of rows per file of `--mode provider-batch` [default: as many as the provider accepts in 64 MiB]
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u32).range(1..))]
    file_rows: Option<u32>,
    /// Seconds between two requests for the state of the files of `--mode provider-batch` [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    poll: Option<f64>,
    /// Process rows in this process, or in the workers of a Restate server (`formwork worker`) that have the same
    /// providers [default: in-process]
    #[arg(long, value_name = "ENGINE", value_enum)]
    engine: Option<Engine>,
    /// The address of Restate's ingress, such as http://127.0.0.1:8080; required by --engine restate
    #[arg(long, value_name = "URL")]
    ingress: Option<String>,
    /// The pool of workers that gets the rows of --engine restate [default: the workers with the same providers and policies]
    #[arg(long, value_name = "NAME")]
    pool: Option<String>,
    /// Maximum number of rows that are submitted to Restate and have no result; --concurrency of them, the oldest, are waited for
    /// [default: 4096]
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    ahead: Option<u32>,
    /// The environment variable with the bearer token for Restate's ingress [default: no token]
    #[arg(long, value_name = "VARIABLE")]
    token_env: Option<String>,
    /// Maximum number of rows in progress [default: as many as the targets sustain, at most 512; 1 for a model in this process]
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u16).range(1..=4096))]
    concurrency: Option<u16>,
    /// Maximum cost of the batch in US dollars, over all its processes. The maximum cost of each call is reserved before the call, so
    /// every provider needs a price [default: no limit]
    #[arg(long, value_name = "USD", value_parser = dollars)]
    budget: Option<f64>,
    #[command(flatten)]
    retries: RetryArgs,
    /// Stop when more rows are rejected than this number, or than this share of the rows with a result, such as 2% [default: no limit]
    #[arg(long, value_name = "ROWS", value_parser = failures)]
    max_failures: Option<MaxFailures>,
    /// Maximum number of rows to process; the others stay open [default: all]
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Process this number of random rows, and estimate the cost of the whole batch with a 90 % interval; the results of these rows are
    /// kept
    #[arg(long, value_name = "ROWS", conflicts_with = "limit", value_parser = clap::value_parser!(u64).range(2..))]
    estimate: Option<u64>,
    /// Exit with 0 even if rows were rejected
    #[arg(long)]
    allow_failures: bool,
    /// Seconds in which rows in progress are finished after the first Ctrl-C or SIGTERM; no further row is started. A second signal
    /// drops their calls at once [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    grace: Option<f64>,
    /// Print the numbers of the batch as one JSON object at the end
    #[arg(long)]
    json: bool,
    /// Print the source of the configuration on standard error
    #[arg(long, short)]
    verbose: bool,
}

/// The way in which models are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Mode {
    /// One request for each call
    Direct,
    /// Files of requests for the batch API of the provider
    ProviderBatch,
}

/// The place where rows are processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Engine {
    /// In this process
    InProcess,
    /// In the workers of a Restate server
    Restate,
}

#[derive(clap::Args)]
pub(crate) struct FolderArgs {
    /// The folder of the batch
    folder: PathBuf,
}

#[derive(clap::Args)]
pub(crate) struct StatusArgs {
    /// The folder of the batch
    folder: PathBuf,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(crate) struct WatchArgs {
    /// The folder of the batch
    folder: PathBuf,
    /// Print JSON objects instead of text, one per line
    #[arg(long)]
    json: bool,
    /// Seconds between two lines of output
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = seconds)]
    interval: f64,
}

#[derive(clap::Args)]
pub(crate) struct ExportArgs {
    /// The folder of the batch
    folder: PathBuf,
    /// Write the rejected rows instead of the values
    #[arg(long)]
    rejected: bool,
    /// The file to write, instead of standard output: JSON Lines, or a table by its ending (.csv, .tsv, .parquet, .arrow; text also with
    /// .gz or .zst)
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

fn failures(text: &str) -> Result<MaxFailures, String> {
    let wrong = || "expected a number of rows or a share such as 2%".to_owned();
    if let Some(share) = text.strip_suffix('%') {
        let share: f64 = share.trim().parse().map_err(|_| wrong())?;
        return Some(MaxFailures::Share(share / 100.0))
            .filter(|_| (0.0..=100.0).contains(&share))
            .ok_or_else(wrong);
    }
    text.parse().map(MaxFailures::Rows).map_err(|_| wrong())
}

/// Returns the failure of an operation of a batch.
pub(super) fn failed(error: BatchError) -> Failed {
    if error.is_full() {
        return Failed::usage(format!(
            "{error}: the disk is full; make room, and go on with `formwork batch resume`"
        ));
    }
    Failed::usage(error)
}

pub(crate) fn run(command: &Command, providers: &Providers) -> Result<Status, Failed> {
    match command {
        Command::Run(args) => work::start(args, providers),
        Command::Resume(args) => work::resume(args, providers, false),
        Command::Retry(args) => work::resume(args, providers, true),
        Command::Status(args) => status(args),
        Command::Watch(args) => watch(args),
        Command::Pause(args) => want(args, Stop::Paused),
        Command::Cancel(args) => want(args, Stop::Cancelled),
        Command::Export(args) => export(args),
    }
}

fn status(args: &StatusArgs) -> Result<Status, Failed> {
    let view = View::open(&args.folder).map_err(failed)?;
    let mut numbers = numbers::of(&view).map_err(failed)?;
    numbers.estimate = numbers::estimated(&view).map_err(failed)?.filter(|_| numbers.open > 0);
    output::either(args.json, &numbers, || numbers::page(&numbers))?;
    Ok(Status::Ok)
}

fn watch(args: &WatchArgs) -> Result<Status, Failed> {
    let view = View::open(&args.folder).map_err(failed)?;
    let mut pace = numbers::Rate::default();
    loop {
        let numbers = numbers::of(&view).map_err(failed)?;
        output::either(args.json, &numbers, || pace.line(&numbers) + "\n")?;
        if view.process().is_none() {
            return Ok(Status::Ok);
        }
        std::thread::sleep(Duration::from_secs_f64(args.interval));
    }
}

fn want(args: &FolderArgs, stop: Stop) -> Result<Status, Failed> {
    let view = View::open(&args.folder).map_err(failed)?;
    let folder = args.folder.display();
    let is_worked_on = view.process().is_some();
    if stop == Stop::Paused && !is_worked_on {
        say!("no process works on the batch in {folder}: `formwork batch resume {folder}` continues it");
        return Ok(Status::Ok);
    }
    view.set_control(Control::Stop(stop)).map_err(failed)?;
    match stop {
        Stop::Paused => say!(
            "paused: the rows in progress are finished; `formwork batch resume {folder}` continues the batch"
        ),
        _ => say!("cancelled: `formwork batch retry {folder}` processes its open rows again"),
    }
    Ok(Status::Ok)
}

fn export(args: &ExportArgs) -> Result<Status, Failed> {
    let view = View::open(&args.folder).map_err(failed)?;
    if let Some(path) = &args.to {
        return view.export_to(path, args.rejected).map(|_| Status::Ok).map_err(failed);
    }
    let mut out = Printed(None);
    let written = view.export(args.rejected, &mut out);
    match out.0 {
        // A closed pipe (`| head`) ends the command without a message.
        Some(failed) => Err(failed),
        None => written.map(|_| Status::Ok).map_err(failed),
    }
}

/// Standard output as [`output`] writes it.
struct Printed(Option<Failed>);

impl io::Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::stdout().lock().write(bytes).inspect_err(|error| {
            self.0 = Some(Failed::from(io::Error::from(error.kind())));
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().lock().flush()
    }
}
