//! Scores on third-party corpora. The data is read from its folder and never copied into the repository.

mod check;
mod documents;
mod lower;
mod peers;
mod read;
mod reader;
mod transforms;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use formwork_dialect::{Reaction, lint};
use formwork_schema::{Compiled, compile};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
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
    /// The schemas that other projects' transforms produce, from measure/peers/transforms.py, for `--only peers`
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
    Reader,
    Check,
    Documents,
    Lower,
    Peers,
    Transforms,
}

pub(crate) fn run(args: &Args) -> Result<(), String> {
    let wants = |part| args.only.is_none_or(|only| only == part);
    if wants(Part::Read) {
        read::mechanical(args)?;
        read::mechanical_with_schema(args)?;
        read::suites(args)?;
        read::suites_with_schema(args)?;
    }
    if wants(Part::Reader) {
        reader::run(args)?;
    }
    if wants(Part::Check) {
        check::run(args)?;
    }
    if wants(Part::Documents) {
        documents::run(args)?;
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
            "{}: {error} (the corpora lie beside the project; name their folder with --folder, or a file with --rows)",
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
        println!("{title}: {right}/{all} = {:.1} %", percent(right, all));
        for (kind, (right, all)) in &self.0 {
            println!("  {kind:<40} {right:>4}/{all:<4} {:5.1} %", percent(*right, *all));
        }
    }
}

/// Returns what draws documents, always the same ones.
fn runner() -> TestRunner {
    let config = Config { max_local_rejects: 20, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]))
}

/// Returns a part as a percentage of the whole.
fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

/// The counts of schemas and of their instances after a transform has changed the schemas for a provider.
#[derive(Default)]
struct Transformed {
    schemas: usize,
    /// Schemas that the transform failed on.
    failed: usize,
    /// Schemas with a keyword that the provider rejects, by the linter, and schemas that no validator can read.
    rejected: usize,
    valid: usize,
    /// Valid instances that survive.
    kept: usize,
    invalid: usize,
    refused: usize,
}

impl Transformed {
    /// Counts a schema of a dialect, or its absence. Returns it compiled, if it can be sent.
    fn schema(&mut self, dialect: &str, schema: Option<&Value>) -> Option<Arc<Compiled>> {
        self.schemas += 1;
        let Some(schema) = schema else {
            self.failed += 1;
            return None;
        };
        let is_rejected = lint(dialect, schema).iter().any(|finding| finding.verdict == Reaction::Rejected);
        let compiled = compile(schema).ok().filter(|_| !is_rejected);
        self.rejected += usize::from(compiled.is_none());
        compiled
    }

    /// Counts an instance.
    fn instance(&mut self, is_valid: bool, survives: bool) {
        if is_valid {
            self.valid += 1;
            self.kept += usize::from(survives);
        } else {
            self.invalid += 1;
            self.refused += usize::from(!survives);
        }
    }

    /// Returns the number of schemas that can be sent.
    fn sent(&self) -> usize {
        self.schemas - self.failed - self.rejected
    }
}
