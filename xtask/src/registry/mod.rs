//! `cargo xtask registry`: checks and updates the registry of models.

mod check;
mod prices;
mod update;

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use clap::Subcommand;
use formwork_dialect::registry::{Date, Registry, known_price};

use crate::workspace;

/// The path of the registry, relative to the root of the workspace.
const FILE: &str = "crates/core/dialect/registry/models.toml";

/// The path of the table of prices, relative to the root of the workspace.
const PRICES: &str = "crates/core/dialect/registry/prices.csv";

#[derive(Subcommand)]
pub(crate) enum Action {
    /// Report rows that are outdated, can never match, or were not checked for a long time
    Check {
        /// Fail if a row is outdated or can never match
        #[arg(long)]
        strict: bool,
        /// The current date, as YYYY-MM-DD [default: today]
        #[arg(long)]
        today: Option<Date>,
    },
    /// Compare prices, limits and retirement dates with public tables
    Update {
        /// models.dev's `api.json`, or LiteLLM's `model_prices_and_context_window.json` [default: the newest packages `litellm` and
        /// `genai-prices` of PyPI, which are fetched with pip]
        file: Option<PathBuf>,
        /// Write the differences into the registry and its table of prices
        #[arg(long)]
        write: bool,
        /// The date of the check in changed rows, as YYYY-MM-DD [default: today]
        #[arg(long)]
        today: Option<Date>,
    },
}

pub(crate) fn run(action: &Action) -> Result<(), String> {
    let text =
        fs::read_to_string(workspace::root().join(FILE)).map_err(|error| format!("{FILE}: {error}"))?;
    let registry = Registry::from_toml(&text).map_err(|error| format!("{FILE}:{error}"))?;
    match action {
        Action::Check { strict, today } => check(&registry, *strict, today.map_or_else(clock, Ok)?),
        Action::Update { file, write, today } => {
            let file = match file {
                Some(file) => file.clone(),
                None => fetched(*write)?,
            };
            let read = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
            let facts = prices::read(&read).map_err(|error| format!("{}: {error}", file.display()))?;
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

/// Fetches the newest public tables, prints how the merged table of prices differs from ours, and writes it on demand. Returns
/// LiteLLM's file.
fn fetched(write: bool) -> Result<PathBuf, String> {
    let folder = workspace::root().join("target/registry");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let own = workspace::root().join("xtask/src/registry");
    let mut python = Command::new("python3");
    python.arg(own.join("tables.py")).arg(own.join("decisions.csv")).arg(&folder);
    // A machine without a network has the packages in an environment of its own.
    python.args(std::env::var_os("REGISTRY_PYTHON"));
    let status = python.status().map_err(|error| format!("python3: {error}"))?;
    let read = |path: &Path| fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()));
    let (ours, theirs) = (workspace::root().join(PRICES), folder.join("prices.csv"));
    let (before, after) = (read(&ours)?, read(&theirs)?);
    let known: HashSet<&str> = before.lines().collect();
    let changed = after.lines().filter(|line| !known.contains(line)).inspect(|line| println!("new: {line}"));
    println!("{} lines of {PRICES} are new or differ", changed.count());
    let covered = coverage(&read(&folder.join("names.txt"))?);
    if !status.success() {
        return Err(
            "the tables disagree about the models above: settle each in xtask/src/registry/decisions.csv"
                .to_owned(),
        );
    }
    // The table of this build is the one before.
    if write {
        fs::write(&ours, after).map_err(|error| format!("{PRICES}: {error}"))?;
    } else {
        covered?;
    }
    Ok(folder.join("litellm.json"))
}

/// Vendors that serve models of others, whose names differ more.
const HOSTS: &[&str] =
    &["azure", "bedrock", "fireworks", "huggingface", "openrouter", "together", "vertex_ai"];

/// Prints the share of the models that a public table prices that have a price here, by vendor, with some names that have none.
///
/// # Errors
/// The share is below 95 percent of the models of vendors, or below 80 percent of those of hosts.
fn coverage(names: &str) -> Result<(), String> {
    let mut of_vendors: BTreeMap<&str, (usize, Vec<&str>)> = BTreeMap::new();
    for (vendor, model) in names.lines().filter_map(|name| name.split_once('/')) {
        let (count, missing) = of_vendors.entry(vendor).or_default();
        *count += 1;
        if known_price(vendor, model).is_none() {
            missing.push(model);
        }
    }
    for (is_host, kind, least) in [(false, "vendors", 95), (true, "hosts", 80)] {
        let (mut all, mut priced) = (0, 0);
        for (vendor, (count, missing)) in
            of_vendors.iter().filter(|(vendor, _)| HOSTS.contains(vendor) == is_host)
        {
            (all, priced) = (all + count, priced + count - missing.len());
            let some = missing.iter().take(5).copied().collect::<Vec<_>>().join(", ");
            println!("{vendor}: {} of {count} have a price; without: {some}", count - missing.len());
        }
        println!("{kind}: {priced} of {all} models ({} %)", priced * 100 / all.max(1));
        if priced * 100 < all * least {
            return Err(format!(
                "less than {least} % of the models of {kind} have a price in {PRICES}: update it with --write"
            ));
        }
    }
    Ok(())
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
