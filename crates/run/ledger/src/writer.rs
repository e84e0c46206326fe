//! The only writing thread: tasks with a waiting caller are written at once, runs in groups.

use std::sync::Arc;

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};

use crate::cache_size::Size;
use crate::core::Core;
use crate::error::is_full;
use crate::queue::{Batch, Task};
use crate::task::Job;
use crate::{Error, RunRecord, insert};

/// The bytes that keys and spending may take beyond [`Settings::max_bytes`](crate::Settings::max_bytes).
const HEADROOM: u64 = 1 << 20;

/// The number of attempts to write a group while another process locks the file; each attempt waits for five seconds.
const TRIES: usize = 3;

pub(crate) fn run(core: &Arc<Core>) {
    let _end = End(core);
    let mut cache = Size::default();
    loop {
        let batch = core.queue.take(&core.settings);
        let is_last = batch.is_last;
        write(core, batch, &mut cache);
        if is_last {
            break;
        }
    }
}

/// Wakes all waiting callers when the writer has ended, even by a panic.
struct End<'a>(&'a Core);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.queue.abandon();
    }
}

fn write(core: &Core, batch: Batch, cache: &mut Size) {
    let (mut writes, mut flushes) = (Vec::new(), Vec::new());
    for task in batch.tasks {
        match task {
            Task::Write(write) => writes.push(write),
            Task::Flush(done) => flushes.push(done),
        }
    }
    // Settlements that failed before are tried again first.
    let mut all = core.take_unsettled();
    all.append(&mut writes);
    if !all.is_empty() {
        run_writes(core, all);
    }
    if !batch.runs.is_empty() && write_runs(core, batch.runs, batch.is_last) {
        core.queue.has_written_runs(core.mark(), batch.lines);
    }
    if !batch.puts.is_empty() {
        let mut connection = core.store.writer();
        limit(core, &connection, 0);
        let put = in_transaction(&mut connection, |transaction| {
            cache.put(transaction, &batch.puts, core.settings.max_cache_bytes)
        });
        drop(connection);
        core.queue.has_written();
        if let Err(error) = put {
            *cache = Size::default();
            core.note(&error);
        }
    }
    for done in flushes {
        let _ = done.send(Ok(()));
    }
}

pub(crate) fn in_transaction<T>(
    connection: &mut Connection,
    write: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let value = write(&transaction)?;
    transaction.commit()?;
    Ok(value)
}

/// Limits the file to the size of the settings and this number of additional bytes.
fn limit(core: &Core, connection: &Connection, more: u64) {
    if let Some(max) = core.settings.max_bytes {
        let page: u32 = connection.pragma_query_value(None, "page_size", |row| row.get(0)).unwrap_or(4096);
        let pages =
            i64::try_from(max.saturating_add(more) / u64::from(page.max(1))).unwrap_or(i64::MAX).max(1);
        // If the limit cannot be set, recording continues without it.
        let _ = connection.pragma_update(None, "max_page_count", pages);
    }
}

/// Commits all tasks together. A task that fails on its own undoes nothing but itself.
fn run_writes(core: &Core, jobs: Vec<Box<dyn Job>>) {
    let mut connection = core.store.writer();
    limit(core, &connection, HEADROOM);
    let mut done = Vec::with_capacity(jobs.len());
    let mut rest = jobs.into_iter();
    let committed = in_transaction(&mut connection, |transaction| {
        for mut job in rest.by_ref() {
            transaction.execute_batch("SAVEPOINT job")?;
            match job.run(transaction) {
                Ok(()) => {
                    done.push(job);
                    transaction.execute_batch("RELEASE job")?;
                }
                Err(error) => {
                    job.report(Err(Error::on(transaction, &error, true)));
                    // A full disk ends the whole transaction, other errors only this job.
                    if transaction.is_autocommit() {
                        return Err(error);
                    }
                    transaction.execute_batch("ROLLBACK TO job; RELEASE job")?;
                }
            }
        }
        Ok(())
    });
    drop(connection);
    let committed = committed.map_err(|error| {
        core.note(&error);
        Error::write(&error)
    });
    core.wrote(committed.clone().err());
    if committed.is_ok() && !core.counts().lacks_runs {
        core.works_again();
    }
    for job in done.into_iter().chain(rest) {
        job.report(committed.clone());
    }
}

/// Commits runs; sheds first their bodies and then the runs if there is no room. Returns whether none of them is left to write.
fn write_runs(core: &Core, mut runs: Vec<RunRecord>, is_last: bool) -> bool {
    for run in &mut runs {
        run.redact(core.settings.redaction);
    }
    let mut connection = core.store.writer();
    limit(core, &connection, 0);
    let mut tries = 0;
    loop {
        match in_transaction(&mut connection, |transaction| insert::group(transaction, &runs)) {
            Ok(duplicates) => {
                let mut counts = core.counts();
                counts.recorded += (runs.len() - duplicates) as u64;
                counts.shed_runs += duplicates as u64;
                counts.lacks_runs = false;
                drop(counts);
                core.works_again();
                core.wrote(None);
                return true;
            }
            Err(error) => {
                core.note(&error);
                core.counts().lacks_runs = true;
                core.late(runs.len() as u64);
                tries += 1;
                let with_bodies = runs.iter().filter(|run| run.body_bytes() > 0).count();
                let is_busy = error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy);
                if is_busy && tries < TRIES {
                    continue;
                }
                if with_bodies > 0 && (is_full(&error) || !is_busy) {
                    core.counts().shed_bodies += with_bodies as u64;
                    runs.iter_mut().for_each(RunRecord::drop_bodies);
                    continue;
                }
                // A file at its configured size stays so. All else may pass: the runs are kept, as many as the queue has room for.
                let is_at_limit = core.is_at_limit(&error);
                if !is_at_limit {
                    core.wrote(Some(Error::write(&error)));
                }
                let count = runs.len();
                let shed = match (is_at_limit, is_last) {
                    (true, _) => count,
                    // Their lines stay, and the next process that opens the ledger records them.
                    (false, true) => core.queue.shed_at_risk(),
                    (false, false) => core.queue.put_back(runs, &core.settings),
                };
                core.late((count - shed) as u64);
                core.counts().shed_runs += shed as u64;
                return is_at_limit;
            }
        }
    }
}
