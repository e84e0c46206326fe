//! `formwork oracle report`: prints the statistics of a ledger of scores.

use std::fs;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use formwork_oracle::ScoreEvent;
use formwork_oracle::ledger::Entries;
use formwork_oracle::report::Report;

use crate::exit::{Failed, Status};
use crate::stderr::say;
use crate::{files, output};

const AFTER_HELP: &str = "\
Examples:
  formwork oracle batch wallets/ --ledger scores.jsonl > answers.jsonl
  formwork oracle report scores.jsonl
  formwork oracle report scores.jsonl --html report.html --json

Damaged lines, for example after a loss of power, are skipped with a warning on standard error.

Exit codes:
  0    every target is met, or --allow-missed
  1    a target is missed, or there are no scores
  2    wrong usage, or an invalid file";

/// Compare a ledger of scores with the quality targets
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The file of `--ledger` of the other commands; `-` is standard input
    ledger: PathBuf,
    /// Write a self-contained HTML page with plots to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Exit with 0 even if a target is missed
    #[arg(long)]
    allow_missed: bool,
    /// Print one JSON document instead of a table
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<Status, Failed> {
    let name = files::name(&args.ledger);
    let report = if args.ledger == Path::new("-") {
        read(Entries::new(io::stdin().lock()), &name)?
    } else {
        let mut begin = [0; 16];
        // A pipe cannot be read twice.
        let is_file = args.ledger.metadata().is_ok_and(|file| file.is_file());
        let is_database = is_file
            && fs::File::open(&args.ledger).and_then(|mut file| file.read_exact(&mut begin)).is_ok()
            && begin == *b"SQLite format 3\0";
        if is_database {
            return Err(Failed::usage(format!(
                "{name} is a ledger of runs, for `formwork runs list --ledger {name}`: name the JSON Lines file of `formwork oracle score --ledger`"
            )));
        }
        let entries: Entries<BufReader<fs::File>> = Entries::open(&args.ledger).map_err(Failed::usage)?;
        read(entries, &name)?
    };
    if let Some(path) = &args.html {
        let title =
            format!("Scores in {}", args.ledger.file_name().unwrap_or(args.ledger.as_os_str()).display());
        fs::write(path, report.html(&title))
            .map_err(|error| Failed::usage(format!("cannot write {}: {error}", path.display())))?;
    }
    if args.json {
        output::line(serde_json::to_string_pretty(&report).map_err(io::Error::from)?)?;
    } else {
        output::text(&report.to_string())?;
    }
    if report.scores == 0 {
        say!("{name}: there are no scores, so nothing was measured");
    }
    Ok(Status::of(args.allow_missed || !report.is_missed()))
}

fn read(entries: Entries<impl BufRead>, name: &str) -> Result<Report, Failed> {
    /// The maximum number of damaged entries that are named.
    const NAMED: usize = 5;

    let (mut broken, mut damaged) = (None, 0_usize);
    let events = entries.map_while(|entry| match entry {
        Ok(entry) => Some(entry),
        Err(error) => {
            broken = Some(error);
            None
        }
    });
    // Entries are read one by one, because a ledger may be larger than the memory.
    let events = events.filter_map(|entry: Result<ScoreEvent, _>| {
        let counted = entry.inspect_err(|why| {
            damaged += 1;
            if damaged <= NAMED {
                say!("warning: {name}: {why}");
            }
        });
        counted.ok()
    });
    let report = Report::of(events);
    if damaged > NAMED {
        say!("warning: {name}: {} further lines are skipped", damaged - NAMED);
    }
    match broken {
        Some(error) => Err(Failed::usage(format!("cannot read {name}: {error}"))),
        None => Ok(report),
    }
}
