//! `cargo xtask chaos`: batches with killed processes, full disks and failing providers.

mod play;

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;

use self::play::kill::{Disk, Play, Seen, play};
use self::play::provider::Faults;
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
    /// The `formwork` program to test [default: a release build of this workspace]
    #[arg(long, value_name = "FILE")]
    formwork: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    let Engine::Sqlite(args) = &args.engine;
    let formwork = match &args.formwork {
        Some(path) => path.clone(),
        None => built()?,
    };
    let folder = workspace::target().join(format!("chaos-{}", std::process::id()));
    let faults =
        Faults { wrong: 300, fail: 10, stall: 3, cut: 7, latency: Duration::from_millis(args.latency) };
    let disk =
        args.full_disk.then(|| Disk { small: format!("{}k", 600 + args.rows / 2), large: "2g".to_owned() });
    let played = Play {
        formwork,
        folder: folder.clone(),
        rows: args.rows,
        kills: args.kills,
        concurrency: args.concurrency,
        faults,
        disk,
    };
    let seen = play(&played)?;
    println!("{}", table(&played, &seen));
    let mut wrong = seen.found.faults(seen.kills as usize * args.concurrency as usize + full(&played, &seen));
    if seen.integrity != "ok" {
        wrong.push(format!("integrity_check: {}", seen.integrity));
    }
    if wrong.is_empty() {
        std::fs::remove_dir_all(&folder).map_err(|error| error.to_string())?;
        return Ok(());
    }
    Err(format!("{}; the files are in {}", wrong.join("; "), folder.display()))
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
