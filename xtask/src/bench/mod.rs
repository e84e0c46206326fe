//! `cargo xtask bench`: measures the cost of operations compared with plain code that uses the same crates, as ratios within one
//! run.

mod build;
mod gateway;
mod http;
mod judging;
mod local;
mod machine;
mod measure;
mod oracle;
mod programs;
mod report;
mod service;
mod shape;
mod validation;

use report::Row;

use crate::workspace;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The measurements to make [default: all]
    #[arg(value_parser = BENCHES.iter().map(|(name, _)| *name).collect::<Vec<_>>())]
    names: Vec<String>,
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
    /// Fail if a goal is missed
    #[arg(long)]
    strict: bool,
}

/// A measurement, which returns one row per figure.
type Bench = fn() -> Result<Vec<Row>, String>;

/// All measurements. Each has its own module.
const BENCHES: &[(&str, Bench)] = &[
    ("machine", machine::measure),
    ("judging", judging::measure),
    ("validation", validation::measure),
    ("shape", shape::measure),
    ("build", build::measure),
    ("http", http::measure),
    ("local", local::measure),
    ("oracle", service::measure),
    ("gateway", gateway::measure),
];

pub(crate) fn run(args: &Args) -> Result<(), String> {
    if cfg!(debug_assertions) {
        return again_in_release();
    }
    let mut rows = Vec::new();
    let is_selected =
        |name: &str| args.names.is_empty() || args.names.iter().any(|is_selected| is_selected == name);
    for (name, bench) in BENCHES.iter().filter(|(name, _)| is_selected(name)) {
        eprintln!("measuring {name} …");
        rows.extend(bench()?);
    }
    if args.json {
        println!("{:#}", report::json(&rows));
    } else {
        print!("{}", report::table(&rows));
    }
    let missed = rows.iter().filter(|row| row.is_met() == Some(false)).count();
    if args.strict && missed > 0 { Err(format!("{missed} of {} goals missed", rows.len())) } else { Ok(()) }
}

/// Builds this program in release mode and runs it with the same arguments, because figures of a debug build are useless.
fn again_in_release() -> Result<(), String> {
    let mut cargo = workspace::cargo();
    cargo.args(["run", "--release", "--quiet", "--package", "xtask", "--"]).args(std::env::args_os().skip(1));
    let status = cargo.status().map_err(|error| format!("cannot start cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err("the optimised run failed, see above".to_owned()) }
}
