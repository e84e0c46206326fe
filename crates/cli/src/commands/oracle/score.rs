//! `formwork oracle score`: scores one wallet.

use std::io;
use std::path::{Path, PathBuf};

use formwork::providers::Providers;
use formwork_core::spaced;
use formwork_oracle::ScoreSource;

use super::asking::{Scoring, failed};
use super::wallets;
use crate::exit::{Failed, Status};
use crate::spinner::Spinner;
use crate::stderr::say;
use crate::{files, output};

const AFTER_HELP: &str = "\
Examples:
  formwork oracle score wallet.json
  formwork oracle score history.csv --survey survey.json
  formwork oracle score export-0xabc.csv --provider ollama --model qwen3:8b
  formwork oracle score wallet.json --examples few-shot.json --prompt mine.md --json
  formwork oracle score wallet.json --provider ollama --model qwen3:8b -v

It prints the score as one line of JSON: score, scoreBreakdown, reasoning, risk_factors, strengths, and its origin: source
(`ai` or `fallback`), prompt, model, attempts. Standard error says whether the model's scores are calibrated
(`formwork oracle calibrate`), and what counting gives.

Exit codes:
  0    there is a score, by a model or the fallback
  1    with --no-fallback: no model gave a valid score
  2    wrong usage, or an invalid file
  3    no provider answered in time, or the model cannot be opened
  130  interrupted";

/// Score one wallet
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The wallet: a JSON document, a CSV file of transactions, or the export of a block explorer; `-` is standard input
    wallet: PathBuf,
    /// The survey of the owner, for a wallet without one: a JSON document
    #[arg(long, value_name = "FILE")]
    survey: Option<PathBuf>,
    #[command(flatten)]
    scoring: Scoring,
    /// Print the score with all its calls
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, providers: &Providers) -> Result<Status, Failed> {
    let survey = args.survey.as_deref();
    files::one_standard_input(&[args.wallet.as_path(), survey.unwrap_or(Path::new(""))])?;
    let wallet = wallets::one(&wallets::reader(&args.wallet, survey)?, &args.wallet)?;
    args.scoring.run(providers, async |oracle, _, cancel| {
        let request = oracle.request(&wallet).with_cancel(cancel.clone());
        let scored = request.with_observer(Spinner::without_notes()).run().await;
        let scored = scored.map_err(|error| failed(&error))?;
        // The response object is the specification's, so the worth of the score is said beside it.
        if !args.json && scored.source == ScoreSource::Ai {
            let fallback = scored.event.counted.map(|score| format!("; counting gives {score}"));
            say!("note: {}{}", scored.event.calibration, fallback.unwrap_or_default());
        }
        let line =
            if args.json { serde_json::to_value(&scored.event) } else { serde_json::to_value(&scored) };
        let line = line.map_err(io::Error::from)?;
        output::line(spaced(&line))?;
        Ok(Status::Ok)
    })
}
