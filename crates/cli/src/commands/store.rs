//! `formwork store`: the answers that batches share.

use std::path::PathBuf;

use clap::Subcommand;
use formwork::providers::Providers;
use formwork_core::Time;
use formwork_ledger::{Ledger, Prune, Settings};

use crate::exit::{Failed, Status};
use crate::ledger::{dollars, duration, failed, now, read};
use crate::{configuration, output};

const AFTER_HELP: &str = "\
Examples:
  formwork store show
  formwork store prune --older-than 90d --dry-run
  formwork store prune --older-than 90d --store letters/store.db

The store is an SQLite file with the answers that batches have paid for; see docs/batches.md. Without --store it is the file of
FORMWORK_STORE, else .formwork/store.db beside the configuration, else formwork/store.db in the user's data folder.

Exit codes:
  0    done
  2    wrong usage, or a file that is no store or not readable";

const PRUNE: &str = "\
Examples:
  formwork store prune --older-than 90d --dry-run
  formwork store prune --older-than 90d

Rows whose answers are deleted stay in the files of results of their batches, but cannot be exported again, and no later batch finds
them.

Exit codes: 0 done, 2 wrong usage, or a file that is no store.";

/// Count and delete the answers that batches share
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
    /// The store [default: as of `formwork batch run`]
    #[arg(long, value_name = "FILE", global = true)]
    store: Option<PathBuf>,
    /// Configuration file, beside which the store is
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Action {
    /// Print the numbers of batches, calls and values, and the cost
    #[command(
        after_help = "Examples:\n  formwork store show\n  formwork store show --json\n\nExit codes: 0 done, 2 wrong usage, or a file that is no store."
    )]
    Show,
    /// Delete old answers
    #[command(after_help = PRUNE)]
    Prune {
        /// The minimum age of the answers, such as 90d, 12h or 30m
        #[arg(long, value_name = "DURATION", value_parser = duration)]
        older_than: u64,
        /// Only count the answers
        #[arg(long)]
        dry_run: bool,
    },
}

pub(crate) fn run(args: &Args, providers: &Providers) -> Result<Status, Failed> {
    let path = match &args.store {
        Some(store) => Some(store.clone()),
        None => {
            let config = configuration::find(args.config.as_deref(), providers)?;
            formwork::store::default(config.as_ref()).map_err(Failed::usage)?
        }
    };
    let path = path.filter(|path| path.exists());
    let path = path.ok_or_else(|| {
        Failed::usage("there is no store yet: `formwork batch run` makes one; or name a file with --store")
    })?;
    let ledger = match args.action {
        Action::Prune { dry_run: false, .. } => Ledger::open(&path, Settings::default()),
        _ => read(&path),
    };
    let ledger = ledger.map_err(failed)?;
    match args.action {
        Action::Show => {
            let found = ledger.answers(Time(0)).map_err(failed)?;
            output::either(args.json, &found, || {
                format!(
                    "store     {}\nbatches   {}\ncalls     {}, {}\nvalues    {}\nopen      {} calls without a result, at most {}\n",
                    path.display(),
                    found.batches,
                    found.calls,
                    dollars(Some(found.micro_usd)),
                    found.values,
                    found.open,
                    dollars(Some(found.open_micro_usd))
                )
            })?;
        }
        Action::Prune { older_than, dry_run } => {
            let before = Time(now().0.saturating_sub(older_than));
            let pruned = if dry_run {
                ledger.answers(before).map_err(failed)?.older
            } else {
                let prune = Prune { answers: Some(before), ..Prune::default() };
                ledger.prune(prune).map_err(failed)?.answers
            };
            let word = if dry_run { "would delete" } else { "deleted" };
            let line = serde_json::json!({"answers": pruned, "dry_run": dry_run});
            output::either(args.json, &line, || format!("{word} {pruned} answers\n"))?;
        }
    }
    Ok(Status::Ok)
}
