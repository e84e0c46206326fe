//! `cargo xtask chaos`: batches with killed processes, full disks and failing providers.

mod play;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Subcommand;

use self::play::kill::{Disk, Play, Seen, play};
use self::play::provider::Faults;
use self::play::submit::{Submit, submit};
use crate::workspace;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    engine: Engine,
}

#[derive(Subcommand)]
enum Engine {
    /// Test the engine on SQLite: the process is killed with kill -9; the provider stalls, fails, and sends truncated and wrong
    /// completions
    Sqlite(Sqlite),
    /// The engine for batch APIs: kill -9 while files are submitted, waited for and collected, files that expire half done, calls
    /// that fail, wrong answers
    ProviderBatch(ProviderBatch),
}

#[derive(clap::Args)]
struct ProviderBatch {
    /// How many rows the batch has
    #[arg(long, default_value_t = 5000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    rows: u64,
    /// How many rows a file of calls has at most
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    file_rows: u64,
    /// How often the process is killed
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
    /// The maximum number of concurrent rows
    #[arg(long, default_value_t = 64)]
    concurrency: u32,
    /// The latency of a completion in milliseconds
    #[arg(long, default_value_t = 20)]
    latency: u64,
    /// Fill the disk once (on machines that can mount a tmpfs)
    #[arg(long)]
    full_disk: bool,
    /// Set the clock back by an hour for every second process, with the command `faketime`
    #[arg(long)]
    clock_back: bool,
    /// The `formwork` program to test [default: a release build of this workspace]
    #[arg(long, value_name = "FILE")]
    formwork: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    let folder = workspace::target().join(format!("chaos-{}", std::process::id()));
    match &args.engine {
        Engine::Sqlite(args) => sqlite(args, folder),
        Engine::ProviderBatch(args) => provider_batch(args, folder),
    }
}

/// Returns the command to test.
fn command(named: Option<&PathBuf>) -> Result<PathBuf, String> {
    named.map_or_else(built, |path| Ok(path.clone()))
}

/// Removes the files of a play without faults.
fn end(folder: &Path, wrong: &[String]) -> Result<(), String> {
    if wrong.is_empty() {
        return std::fs::remove_dir_all(folder).map_err(|error| error.to_string());
    }
    Err(format!("{}; the files are in {}", wrong.join("; "), folder.display()))
}

fn provider_batch(args: &ProviderBatch, folder: PathBuf) -> Result<(), String> {
    let played = Submit {
        formwork: command(args.formwork.as_ref())?,
        folder: folder.clone(),
        rows: args.rows,
        file_rows: args.file_rows,
        kills: args.kills,
        faults: Faults { wrong: 300, fail: 10, stall: 3, cut: 7, latency: Duration::ZERO },
        poll: 0.5,
    };
    let seen = submit(&played)?;
    let found = &seen.found;
    let [before, after, answered] = seen.kills;
    println!(
        "| rows | files | kills before / after a request was carried out / answered | values | rejected | lost | doubled | crossed | calls | \
         submitted twice | integrity | s |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n\
         | {} | {} | {before} / {after} / {answered} | {} | {} | {} | {} | {} | {} | {} | {} | {:.1} |",
        args.rows,
        seen.accepted,
        found.accepted,
        found.rejected,
        found.lost.len(),
        found.doubled.len(),
        found.crossed.len(),
        found.calls,
        seen.twice,
        seen.integrity,
        seen.seconds,
    );
    end(&folder, &seen.faults())
}

fn sqlite(args: &Sqlite, folder: PathBuf) -> Result<(), String> {
    let faults =
        Faults { wrong: 300, fail: 10, stall: 3, cut: 7, latency: Duration::from_millis(args.latency) };
    let disk =
        args.full_disk.then(|| Disk { small: format!("{}k", 600 + args.rows / 2), large: "2g".to_owned() });
    let played = Play {
        formwork: command(args.formwork.as_ref())?,
        folder: folder.clone(),
        rows: args.rows,
        kills: args.kills,
        concurrency: args.concurrency,
        faults,
        clock_back: args.clock_back,
        disk,
    };
    let seen = play(&played)?;
    println!("{}", table(&played, &seen));
    let mut wrong = seen.found.faults(seen.kills as usize * args.concurrency as usize + full(&played, &seen));
    if seen.integrity != "ok" {
        wrong.push(format!("integrity_check: {}", seen.integrity));
    }
    end(&folder, &wrong)
}

/// Returns the maximum number of calls in flight when the disk became full.
fn full(played: &Play, seen: &Seen) -> usize {
    seen.full as usize * played.concurrency as usize
}

fn table(played: &Play, seen: &Seen) -> String {
    let found = &seen.found;
    format!(
        "| rows | kills | full disk | values | rejected | lost | doubled | crossed | calls | repeated | bound | open at kills | most open | integrity | s |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n\
         | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.1} |",
        played.rows,
        seen.kills,
        seen.full,
        found.accepted,
        found.rejected,
        found.lost.len(),
        found.doubled.len(),
        found.crossed.len(),
        found.calls,
        found.unknown,
        seen.kills as usize * played.concurrency as usize + full(played, seen),
        seen.open_at_kills,
        seen.max_open,
        seen.integrity,
        seen.seconds,
    )
}

/// Builds `formwork` without the in-process model, and returns the path of the program.
fn built() -> Result<PathBuf, String> {
    let mut cargo = workspace::cargo();
    cargo.args([
        "build",
        "--quiet",
        "--release",
        "--package",
        "formwork-cli",
        "--no-default-features",
        "--bin",
        "formwork",
    ]);
    let status = cargo.status().map_err(|error| format!("cargo does not start: {error}"))?;
    if !status.success() {
        return Err("the command cannot be built".to_owned());
    }
    Ok(workspace::target().join("release").join("formwork"))
}
