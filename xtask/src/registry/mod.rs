//! `cargo xtask registry`: what is known of models, kept true.

mod check;

use std::fs;
use std::time::SystemTime;

use clap::Subcommand;
use formwork_dialect::registry::{Date, Registry};

use crate::workspace;

/// The file, from the workspace's root.
const FILE: &str = "crates/formwork-dialect/registry/models.toml";

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Fail on rows that are no longer true or can never match, and warn of rows that nobody looked at for long
    Check {
        /// The day that it is taken to be, as YYYY-MM-DD; today without it
        #[arg(long)]
        today: Option<Date>,
    },
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    let Action::Check { today } = &args.action;
    let today = today.map_or_else(clock, Ok)?;
    let text =
        fs::read_to_string(workspace::root().join(FILE)).map_err(|error| format!("{FILE}: {error}"))?;
    let registry = Registry::from_toml(&text).map_err(|error| format!("{FILE}:{error}"))?;
    let found = check::check(registry.entries(), today);
    for warning in &found.warnings {
        eprintln!("warning: {FILE}: {warning}");
    }
    if found.problems.is_empty() {
        println!("{} rows, right on {today}", registry.entries().len());
        return Ok(());
    }
    let problems: Vec<String> = found.problems.iter().map(|problem| format!("{FILE}: {problem}")).collect();
    Err(problems.join("\nerror: "))
}

/// Today, in UTC.
fn clock() -> Result<Date, String> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let days = since.ok().and_then(|since| i64::try_from(since.as_secs() / 86_400).ok());
    days.and_then(Date::from_days_since_epoch)
        .ok_or_else(|| "the clock of this machine is wrong: say the day with --today YYYY-MM-DD".to_owned())
}
