//! `formwork oracle`: scores for wallets.

mod asking;
mod batch;
mod compare;
mod log;
mod report;
mod score;
mod serve;
mod wallets;

use clap::Subcommand;

use crate::exit::{Done, Failed};

const AFTER_HELP: &str = "\
Examples:
  formwork oracle score wallet.json
  formwork oracle score history.csv --survey survey.json --prompt v2
  formwork oracle batch wallets/ --concurrency 4 > scores.jsonl
  formwork oracle compare v1 mine.md wallets/

A wallet is a JSON document with a `summary` or a list of `transactions`, or a CSV file of transactions. Every score is valid
by schema and by the weighted sum; where no model gives one in three attempts, it is counted, and says so.";

/// Score wallets: validated, cross-checked, never without an answer
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Score(score::Args),
    Batch(batch::Args),
    Compare(compare::Args),
    Report(report::Args),
    Serve(serve::Args),
}

pub(crate) fn run(args: &Args) -> Result<Done, Failed> {
    match &args.command {
        Command::Score(args) => score::run(args),
        Command::Batch(args) => batch::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Report(args) => report::run(args),
        Command::Serve(args) => serve::run(args),
    }
}
