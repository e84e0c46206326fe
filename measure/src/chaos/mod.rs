//! `cargo evals chaos`: batches with killed processes, full disks and failing providers.

mod balancer;
mod commands;
mod deployments;
mod play;
mod restate;
mod table;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Subcommand;

use self::play::answers::Faults;
use self::play::kill::{Disk, Play, play};
use self::play::submit::{Submit, submit};
use crate::workspace;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    engine: Engine,
}

#[derive(Subcommand)]
enum Engine {
    /// Test the engine on SQLite: the process is killed with kill -9 and gets SIGTERM; the provider stalls, fails, and sends truncated and wrong
    /// completions
    Sqlite(Sqlite),
    /// The engine for batch APIs: kill -9 while files are submitted, waited for and collected, files that expire half done, calls
    /// that fail, wrong answers
    ProviderBatch(ProviderBatch),
    /// The engine on Restate: kill -9 of workers, of the server and of the submitting process, SIGTERM, cut connections, a slow worker
    Restate(restate::Play),
    /// Old and new workers at one Restate server: rows that began at the old ones end there, and a second batch has a changed contract
    Deployments(deployments::Play),
}

#[derive(clap::Args)]
struct ProviderBatch {
    /// Number of rows of the batch
    #[arg(long, default_value_t = 5000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    rows: u64,
    /// Maximum number of rows per file of calls
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    file_rows: u64,
    /// Number of times that the process is killed; every second time after an answer it gets SIGTERM
    #[arg(long, default_value_t = 30)]
    kills: usize,
    /// The command to test [default: a release build of this workspace's]
    #[arg(long, value_name = "FILE")]
    formwork: Option<PathBuf>,
}

#[derive(clap::Args)]
struct Sqlite {
    /// The number of rows of the batch
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    rows: u64,
    /// The number of kills of the process
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=1000))]
    kills: u32,
    /// The number of times that the process gets SIGTERM
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=1000))]
    terms: u32,
    /// The maximum number of concurrent rows
    #[arg(long, default_value_t = 64)]
    concurrency: u32,
    /// The latency of a completion in milliseconds
    #[arg(long, default_value_t = 20)]
    latency: u64,
    /// Fill the disk once (on machines that can mount a tmpfs)
    #[arg(long)]
    full_disk: bool,
    /// Set the clock back by an hour for every second process, with the command `faketime` (Debian package `faketime`)
    #[arg(long)]
    clock_back: bool,
    /// The `formwork` program to test [default: a release build of this workspace]
    #[arg(long, value_name = "FILE")]
    formwork: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    let folder = workspace::target().join(format!("chaos-{}", std::process::id()));
    match &args.engine {
        Engine::Sqlite(args) => sqlite(args, &folder),
        Engine::ProviderBatch(args) => provider_batch(args, &folder),
        Engine::Restate(play) => {
            let formwork = named_or_built(play.formwork.as_deref())?;
            let seen = restate::play(play, &folder, &formwork)
                .map_err(|error| format!("{error}; the files are in {}", folder.display()))?;
            println!("{}", seen.table(play));
            judged(&seen.faults(), &folder)
        }
        Engine::Deployments(play) => {
            let formwork = named_or_built(play.formwork.as_deref())?;
            let seen = deployments::play(play, &folder, &formwork)
                .map_err(|error| format!("{error}; the files are in {}", folder.display()))?;
            println!("{}", seen.tables(play));
            judged(&seen.faults(), &folder)
        }
    }
}

/// Returns the faults of the simulated providers: 30 % wrong answers, 2 % failed calls.
const fn usual(latency: Duration) -> Faults {
    Faults { wrong: 300, fail: 10, stall: 3, cut: 7, latency }
}

fn provider_batch(args: &ProviderBatch, folder: &Path) -> Result<(), String> {
    let played = Submit {
        formwork: named_or_built(args.formwork.as_deref())?,
        folder: folder.to_owned(),
        rows: args.rows,
        file_rows: args.file_rows,
        kills: args.kills,
        faults: usual(Duration::ZERO),
        poll: 0.5,
    };
    let seen = submit(&played)?;
    println!("{}", table::provider_batch(&played, &seen));
    judged(&seen.faults(), folder)
}

fn sqlite(args: &Sqlite, folder: &Path) -> Result<(), String> {
    let formwork = named_or_built(args.formwork.as_deref())?;
    let faults = usual(Duration::from_millis(args.latency));
    let disk =
        args.full_disk.then(|| Disk { small: format!("{}k", 600 + args.rows / 2), large: "2g".to_owned() });
    let played = Play {
        formwork,
        folder: folder.to_owned(),
        rows: args.rows,
        kills: args.kills,
        terms: args.terms,
        concurrency: args.concurrency,
        faults,
        clock_back: args.clock_back,
        disk,
    };
    let seen = play(&played)?;
    println!("{}", table::sqlite(&played, &seen));
    judged(&seen.faults(), folder)
}

/// Removes the files of a test that found no fault.
fn judged(wrong: &[String], folder: &Path) -> Result<(), String> {
    if wrong.is_empty() {
        std::fs::remove_dir_all(folder).map_err(|error| error.to_string())?;
        return Ok(());
    }
    Err(format!("{}; the files are in {}", wrong.join("; "), folder.display()))
}

/// Returns the named program, or builds `formwork` without the in-process model and returns its path.
fn named_or_built(named: Option<&Path>) -> Result<PathBuf, String> {
    if let Some(path) = named {
        return Ok(path.to_owned());
    }
    let build = ["build", "--quiet", "--release", "--package", "formwork-cli", "--no-default-features"];
    let mut cargo = workspace::cargo();
    cargo.args(build).args(["--features", "restate", "--bin", "formwork"]);
    workspace::built(&mut cargo, "release", "formwork").map_err(|error| error.to_string())
}
