//! `formwork oracle`: scores for wallets.

mod asking;
mod batch;
mod calibrate;
mod compare;
mod import;
mod report;
mod score;
mod serve;
mod wallets;

use formwork::providers::Providers;

use crate::exit::{Failed, Status};

const AFTER_HELP: &str = "\
Examples:
  formwork oracle score wallet.json
  formwork oracle score history.csv --survey survey.json --prompt v2
  formwork oracle batch wallets/ --concurrency 4 > scores.jsonl
  formwork oracle calibrate wallets.jsonl -m openai/gpt-5.4
  formwork oracle compare v1 mine.md wallets/
  formwork oracle import export-0xabc.csv > wallet.json

A wallet is a JSON document with a `summary` or a list of `transactions`, a CSV file of transactions, or an explorer's export
(Etherscan's CSV, the JSON of `txlist`). Every score satisfies the schema and the weighted sum. If no model gives a valid
score in three attempts, the score is computed from the transactions and marked as `fallback`. Valid does not mean correct:
the default model gives valid scores but cannot judge. Use a larger model, and compare its scores with your expectations by
`formwork oracle calibrate`.";

/// A sample application: scores crypto wallets from 0 to 1000
#[derive(clap::Subcommand)]
#[command(after_help = AFTER_HELP)]
pub(crate) enum Command {
    Score(score::Args),
    Batch(batch::Args),
    Calibrate(calibrate::Args),
    Compare(compare::Args),
    Import(import::Args),
    Report(report::Args),
    Serve(serve::Args),
}

pub(crate) fn run(command: &Command, providers: &Providers) -> Result<Status, Failed> {
    match command {
        Command::Score(args) => score::run(args, providers),
        Command::Batch(args) => batch::run(args, providers),
        Command::Calibrate(args) => calibrate::run(args, providers),
        Command::Compare(args) => compare::run(args, providers),
        Command::Import(args) => import::run(args),
        Command::Report(args) => report::run(args),
        Command::Serve(args) => serve::run(args, providers),
    }
}
