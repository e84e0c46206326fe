//! `formwork oracle batch`: scores many wallets, and prints one row for each, in order.

use std::path::PathBuf;

use formwork::providers::Providers;
use formwork_core::{Error, ErrorKind};
use formwork_extract::CancellationToken;
use formwork_oracle::{Oracle, Scored};
use futures_util::{StreamExt as _, stream};

use super::asking::Scoring;
use super::wallets::{self, Named};
use crate::exit::{Failed, Status};
use crate::jsonl;
use crate::rows::{OracleError, OracleOutput};

const AFTER_HELP: &str = "\
Examples:
  formwork oracle batch wallets/ > scores.jsonl
  formwork oracle batch one.json two.csv --prompt v2
  formwork oracle batch wallets/ --ledger scores.ledger.jsonl > /dev/null
  cat wallets.jsonl | formwork oracle batch - --concurrency 8
      rows: a wallet -> {\"id\", \"ok\", \"score\"?, \"calibration\"?, \"counted\"?, \"trust\"?, \"error\"?}

Exit codes:
  0    every wallet has a score
  1    a wallet has no score: its file is invalid, or with --no-fallback no model gave a valid score (unless --allow-failures)
  2    wrong usage, or an invalid file
  3    no provider answered in time, or the model cannot be opened
  130  interrupted";

/// Score many wallets
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Folders, .json, .csv and .jsonl files; `-` is standard input with one wallet per line
    #[arg(required = true)]
    wallets: Vec<PathBuf>,
    /// Maximum number of wallets in progress at a time
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    concurrency: u16,
    /// Exit with 0 even if a wallet has no score
    #[arg(long)]
    allow_failures: bool,
    #[command(flatten)]
    scoring: Scoring,
}

pub(super) fn run(args: &Args, providers: &Providers) -> Result<Status, Failed> {
    let (mut incoming, total) = wallets::incoming(&args.wallets)?;
    args.scoring.run(providers, async |oracle, _, cancel| {
        // A cancellation starts no further wallet.
        let named = stream::poll_fn(|cx| incoming.poll_recv(cx)).take_until(cancel.cancelled());
        let rows = named.map(|named| answer(oracle, named, cancel));
        let mut rows = std::pin::pin!(rows.buffered(usize::from(args.concurrency)));
        let mut printed = jsonl::Printed::new("wallets", total);
        while let Some(row) = rows.next().await {
            printed.row(&row, row.ok)?;
        }
        if cancel.is_cancelled() {
            return Err(Failed::interrupted());
        }
        Ok(Status::of(printed.all_ok || args.allow_failures))
    })
}

async fn answer(oracle: &Oracle, named: Named, cancel: &CancellationToken) -> OracleOutput {
    let Named { id, wallet } = named;
    let scored: Result<Scored, Error> = match wallet {
        Ok(wallet) => oracle.request(&wallet).with_cancel(cancel.clone()).run().await,
        Err(message) => Err(Error::new(ErrorKind::Config, message)),
    };
    let event = scored.as_ref().ok().map(|scored| scored.event.clone());
    let (score, error) = match scored {
        Ok(scored) => (Some(scored), None),
        Err(error) => (None, Some(OracleError { class: error.kind(), message: error.to_string() })),
    };
    OracleOutput {
        id,
        ok: score.is_some(),
        score,
        calibration: event.as_ref().map(|event| event.calibration),
        counted: event.as_ref().and_then(|event| event.counted),
        trust: event.and_then(|event| event.trust),
        error,
    }
}
