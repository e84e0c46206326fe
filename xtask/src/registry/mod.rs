//! `cargo xtask registry`: checks and updates the registry of models.

mod check;
mod prices;
mod update;

use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use clap::Subcommand;
use formwork_dialect::registry::{Date, Registry};

use crate::workspace;

/// The path of the registry, relative to the root of the workspace.
const FILE: &str = "crates/core/dialect/registry/models.toml";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Report rows that are outdated, can never match, or were not checked for a long time
    Check {
        /// Fail if a row is outdated or can never match
        #[arg(long)]
        strict: bool,
        /// The current date, as YYYY-MM-DD [default: today]
        #[arg(long)]
        today: Option<Date>,
    },
    /// Compare prices, limits and retirement dates with a price file of models.dev or LiteLLM
    Update {
        /// models.dev's `api.json`, or LiteLLM's `model_prices_and_context_window.json`
        file: PathBuf,
        /// Write the differences into the registry
        #[arg(long)]
        write: bool,
        /// The date of the check in changed rows, as YYYY-MM-DD [default: today]
        #[arg(long)]
        today: Option<Date>,
    },
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    let text =
        fs::read_to_string(workspace::root().join(FILE)).map_err(|error| format!("{FILE}: {error}"))?;
    let registry = Registry::from_toml(&text).map_err(|error| format!("{FILE}:{error}"))?;
    match &args.action {
        Action::Check { strict, today } => check(&registry, *strict, today.map_or_else(clock, Ok)?),
        Action::Update { file, write, today } => {
            let prices = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
            let facts = prices::read(&prices).map_err(|error| format!("{}: {error}", file.display()))?;
            let found = update::compare(&registry, &facts);
            print(&registry, &found);
            if !*write || found.differences.is_empty() {
                return Ok(());
            }
            let written = update::write(&text, &found.differences, today.map_or_else(clock, Ok)?);
            Registry::from_toml(&written).map_err(|error| format!("the new text is no registry: {error}"))?;
            fs::write(workspace::root().join(FILE), written).map_err(|error| format!("{FILE}: {error}"))
        }
    }
}

/// Prints the comparison with a price file.
fn print(registry: &Registry, found: &update::Comparison) {
    for difference in &found.differences {
        println!("{}", difference.line(registry));
    }
    for unclear in &found.unclear {
        println!("look at it: {unclear}");
    }
    println!(
        "{} differences, {} to look at, {} models of the file without a row: {}",
        found.differences.len(),
        found.unclear.len(),
        found.unknown.len(),
        found.unknown.iter().take(20).cloned().collect::<Vec<_>>().join(", ")
    );
}

fn check(registry: &Registry, strict: bool, today: Date) -> Result<(), String> {
    let found = check::check(registry.entries(), today);
    for warning in &found.warnings {
        eprintln!("warning: {FILE}: {warning}");
    }
    let problems: Vec<String> = found.problems.iter().map(|problem| format!("{FILE}: {problem}")).collect();
    if problems.is_empty() {
        println!("{} rows, right on {today}", registry.entries().len());
    } else if strict {
        return Err(problems.join("\nerror: "));
    }
    for problem in &problems {
        eprintln!("warning: {problem}");
    }
    Ok(())
}

/// Returns the current date in UTC.
fn clock() -> Result<Date, String> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let days = since.ok().and_then(|since| i64::try_from(since.as_secs() / 86_400).ok());
    days.and_then(Date::from_days_since_epoch)
        .ok_or_else(|| "the clock of this machine is wrong: say the day with --today YYYY-MM-DD".to_owned())
}
