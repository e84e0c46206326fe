//! Scores on third-party corpora. The data is read from its folder and never copied into the repository.

mod check;
mod lower;
mod peers;
mod read;
mod transforms;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde_json::Value;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The folder of the corpora
    #[arg(long, default_value = "../shared/corpora")]
    folder: PathBuf,
    /// Run only one part
    #[arg(long, value_enum)]
    only: Option<Part>,
    /// Lower only to these dialects
    #[arg(long)]
    dialect: Vec<String>,
    /// The schemas that other projects' transforms produce, from evals/peers/transforms.py, for `--only peers`
    #[arg(long)]
    peers: Option<PathBuf>,
    /// Print the failed rows, or only those of the named kind
    #[arg(long, num_args = 0..=1, default_missing_value = "")]
    failures: Option<String>,
}

impl Args {
    /// Returns whether failures of this kind are printed.
    fn prints(&self, kind: &str) -> bool {
        self.failures.as_deref().is_some_and(|pattern| pattern.is_empty() || kind.contains(pattern))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Read,
    Check,
    Lower,
    Peers,
    Transforms,
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    let wants = |part| args.only.is_none_or(|only| only == part);
    if wants(Part::Read) {
        read::mechanical(args)?;
        read::suites(args)?;
    }
    if wants(Part::Check) {
        check::run(args)?;
    }
    if wants(Part::Lower) {
        lower::run(args)?;
    }
    if wants(Part::Transforms) {
        transforms::run(args)?;
    }
    if args.only == Some(Part::Peers) {
        peers::run(args)?;
    }
    Ok(())
}

pub(crate) fn rows(path: &Path) -> Result<Vec<Value>, String> {
    let file = File::open(path).map_err(|error| {
        format!(
            "{}: {error} (the corpora lie beside the project; name their folder with --folder)",
            path.display()
        )
    })?;
    BufReader::new(file)
        .lines()
        .enumerate()
        .map(|(n, line)| {
            let line = line.map_err(|error| format!("{}:{}: {error}", path.display(), n + 1))?;
            serde_json::from_str(&line).map_err(|error| format!("{}:{}: {error}", path.display(), n + 1))
        })
        .collect()
}

pub(crate) fn text<'r>(row: &'r Value, field: &str) -> &'r str {
    row[field].as_str().unwrap_or_default()
}

#[derive(Default)]
struct Scores(BTreeMap<String, (usize, usize)>);

impl Scores {
    fn add(&mut self, kind: &str, right: bool) {
        let (rights, all) = self.0.entry(kind.to_owned()).or_default();
        *rights += usize::from(right);
        *all += 1;
    }

    fn print(&self, title: &str) {
        let (right, all) = self.0.values().fold((0, 0), |(r, a), (right, all)| (r + right, a + all));
        println!("{title}: {right}/{all} = {:.1} %", 100.0 * right as f64 / all.max(1) as f64);
        for (kind, (right, all)) in &self.0 {
            println!(
                "  {kind:<40} {right:>4}/{all:<4} {:5.1} %",
                100.0 * *right as f64 / (*all).max(1) as f64
            );
        }
    }
}
