//! `cargo evals bench`: measures the cost of operations compared with plain code that uses the same crates, as ratios within one
//! run.

mod build;
mod client;
mod gateway;
mod http;
mod judging;
mod local;
mod machine;
mod measure;
mod next_step;
mod oracle;
pub(crate) mod parts;
pub(crate) mod process;
mod reading;
mod report;
mod service;
mod shape;
pub(crate) mod soak;
mod validation;

use clap::ValueEnum as _;

use crate::{Failure, workspace};
use report::Row;

pub(crate) use client::get;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The measurements to make [default: all]
    #[arg(value_enum)]
    names: Vec<Bench>,
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
    /// Fail if a goal is missed
    #[arg(long)]
    strict: bool,
}

/// The measurements. Each has its own module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Bench {
    Machine,
    Judging,
    Reading,
    Validation,
    Shape,
    Build,
    Http,
    Local,
    Oracle,
    Gateway,
    NextStep,
}

impl Bench {
    /// Returns one row per figure.
    async fn measure(self) -> Result<Vec<Row>, Failure> {
        match self {
            Self::Machine => machine::measure().await,
            Self::Judging => judging::measure().await,
            Self::Reading => reading::measure().await,
            Self::Validation => validation::measure(),
            Self::Shape => shape::measure().await,
            Self::Build => build::measure(),
            Self::Http => http::measure().await,
            Self::Local => local::measure(),
            Self::Oracle => service::measure().await,
            Self::Gateway => gateway::measure().await,
            Self::NextStep => next_step::measure().await,
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let is_selected = |bench: &&Bench| args.names.is_empty() || args.names.contains(bench);
    let counts_bytes = |bench: &Bench| matches!(bench, Bench::NextStep);
    if !is_optimized() && !Bench::value_variants().iter().filter(is_selected).all(counts_bytes) {
        return optimized();
    }
    let mut rows = Vec::new();
    for bench in Bench::value_variants().iter().filter(is_selected) {
        eprintln!("measuring {bench:?} …");
        rows.extend(runtime()?.block_on(bench.measure())?);
    }
    if args.json {
        println!("{:#}", report::json(&rows));
    } else {
        print!("{}", report::table(&rows));
    }
    let missed = rows.iter().filter(|row| row.is_met() == Some(false)).count();
    if args.strict && missed > 0 {
        return Err(format!("{missed} of {} goals missed", rows.len()).into());
    }
    Ok(())
}

/// Returns a runtime of one thread.
pub(crate) fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Returns whether this program was built with the profile `dist`. Figures of other builds are useless.
fn is_optimized() -> bool {
    let program = std::env::current_exe().unwrap_or_default();
    program.parent().is_some_and(|folder| folder.ends_with("dist"))
}

/// Builds this program with the profile `dist`, and runs it with the same arguments.
fn optimized() -> Result<(), Failure> {
    let mut cargo = workspace::cargo();
    cargo.args(["run", "--profile", "dist", "--quiet", "--manifest-path", "measure/Cargo.toml", "--"]);
    cargo.args(std::env::args_os().skip(1));
    let status = cargo.status().map_err(|error| format!("cargo does not start: {error}"))?;
    if status.success() { Ok(()) } else { Err("the optimised run failed, see above".into()) }
}
