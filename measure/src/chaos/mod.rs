//! `cargo evals chaos`: batches with killed processes, full disks and failing providers.

mod balancer;
mod commands;
mod deployments;
mod play;
mod restate;
mod table;

use std::path::{Path, PathBuf};

use clap::Subcommand;

use self::play::{kill, submit};
use crate::{Failure, workspace};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    engine: Engine,
    /// The `formwork` program to test [default: a release build of this workspace, with the feature `restate`]
    #[arg(long, value_name = "FILE", global = true)]
    formwork: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Engine {
    /// Test the engine on SQLite: the process is killed with kill -9 and gets SIGTERM; the provider stalls, fails, and sends truncated and wrong
    /// completions
    Sqlite(kill::Play),
    /// The engine for batch APIs: kill -9 while files are submitted, waited for and collected, files that expire half done, calls
    /// that fail, wrong answers
    ProviderBatch(submit::Play),
    /// The engine on Restate: kill -9 of workers, of the server and of the submitting process, SIGTERM, cut connections, a slow worker
    Restate(restate::Play),
    /// Old and new workers at one Restate server: rows that began at the old ones end there, and a second batch has a changed contract
    Deployments(deployments::Play),
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let folder = workspace::target().join(format!("chaos-{}", std::process::id()));
    let formwork = named_or_built(args.formwork.as_deref())?;
    let played = match &args.engine {
        Engine::Sqlite(play) => kill::play(play, &folder, &formwork)
            .map(|seen| (table::sqlite(play, &seen).to_string(), seen.faults())),
        Engine::ProviderBatch(play) => submit::play(play, &folder, &formwork)
            .map(|seen| (table::provider_batch(play, &seen).to_string(), seen.faults())),
        Engine::Restate(play) => restate::play(play, &folder, &formwork),
        Engine::Deployments(play) => deployments::play(play, &folder, &formwork),
    };
    let kept = |error: String| format!("{error}; the files are in {}", folder.display());
    let (table, wrong) = played.map_err(|error| kept(error.to_string()))?;
    println!("{table}");
    if !wrong.is_empty() {
        return Err(kept(wrong.join("; ")).into());
    }
    Ok(std::fs::remove_dir_all(&folder)?)
}

/// Returns the named program, or builds `formwork` without the in-process model and returns its path.
fn named_or_built(named: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(path) = named {
        return Ok(path.to_owned());
    }
    let build = ["build", "--quiet", "--release", "--package", "formwork-cli", "--no-default-features"];
    let mut cargo = workspace::cargo();
    cargo.args(build).args(["--features", "restate", "--bin", "formwork"]);
    workspace::built(&mut cargo, "release", "formwork")
}
