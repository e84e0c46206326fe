//! Runs of processes that ended before they had written them.

use std::collections::HashMap;
use std::path::Path;

use crate::settle::settle;
use crate::store::Store;
use crate::writer::in_transaction;
use crate::{insert, process};

/// Records the runs that processes left beside the file when they ended, with what they have cost. Those that cannot be written now
/// stay where they are, for the next process that opens the ledger.
pub(crate) fn recover(store: &Store, ledger: &Path) {
    for left in process::left(ledger) {
        let (path, runs) = (ledger.display().to_string(), left.runs.len());
        if runs == 0 {
            left.remove();
            continue;
        }
        let recorded = in_transaction(&mut store.writer(), |transaction| {
            insert::group(transaction, &left.runs)?;
            let sql =
                "SELECT run, id FROM spending WHERE process = ?1 AND actual IS NULL AND run IS NOT NULL";
            let mut open = transaction.prepare(sql)?;
            let open = open.query_map([&left.name], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let open: HashMap<i64, i64> = open.collect::<rusqlite::Result<_>>()?;
            left.runs.iter().try_for_each(|run| match (open.get(&run.id.0), run.micro_usd) {
                (Some(id), Some(cost)) => settle(transaction, *id, cost),
                _ => Ok(()),
            })
        });
        match recorded {
            Ok(()) => {
                tracing::info!(
                    path,
                    runs,
                    "runs of a process that ended before it had written them are recorded"
                );
                left.remove();
            }
            Err(error) => {
                tracing::warn!(path, runs, %error, "runs of a process that ended before it had written them wait beside the ledger");
                // Each attempt waits for a file that another process locks.
                break;
            }
        }
    }
}
