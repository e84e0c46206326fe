//! Retention: deletes old data.

use std::time::Duration;

use formwork_core::Time;
use rusqlite::Connection;
use serde::Serialize;

use crate::insert::{DAY, HOUR, count, number};
use crate::store::PATIENCE;
use crate::{Error, Ledger};

/// The number of runs that are deleted in one transaction; between transactions others can write.
const PRUNED: i64 = 1000;

/// Selects rows to delete: everything before these times. The default deletes nothing.
///
/// ```
/// use formwork_core::Time;
/// use formwork_ledger::{Ledger, Prune, RunRecord, Settings};
///
/// let ledger = Ledger::in_memory(Settings::default())?;
/// let now = Time(1_795_000_000_000);
/// ledger.record(RunRecord::new("extract", now));
/// ledger.flush_blocking()?;
/// let pruned = ledger.prune(Prune { runs: Some(Time(now.0 + 1)), ..Prune::default() })?;
/// assert_eq!(pruned.runs, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Prune {
    /// Runs that ended before this time, with all that belongs to them and the record of their settled spending. What keys have
    /// spent in total stays, and so do reservations that were never settled.
    pub runs: Option<Time>,
    /// Requests and answers of runs that ended before this time.
    pub bodies: Option<Time>,
    /// Rollups of hours and days that began before this time.
    pub rollups: Option<Time>,
    /// Answers of batches that were asked for before this time. The sums of their batches stay.
    pub answers: Option<Time>,
}

/// The number of rows that were deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Pruned {
    /// Runs.
    pub runs: u64,
    /// Runs whose request and answers were deleted; those of deleted runs are not counted.
    pub bodies: u64,
    /// Rows of rollups.
    pub rollups: u64,
    /// Answers of batches.
    pub answers: u64,
}

/// The answers of batches in a store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Answers {
    /// The batches that made calls.
    pub batches: u64,
    /// The calls whose results are known.
    pub calls: u64,
    /// The rows that ended with a value.
    pub values: u64,
    /// The cost of these calls in millionths of a US dollar, as far as prices are known, pruned ones included.
    pub micro_usd: u64,
    /// The calls without a result: open ones, and those whose process died.
    pub open: u64,
    /// The most that these cost in millionths of a US dollar, as far as prices are known.
    pub open_micro_usd: u64,
    /// The answers that were asked for before the time of [`Ledger::answers`].
    pub older: u64,
}

impl Ledger {
    /// Deletes old data in transactions of a thousand runs, and returns the space to the file system. Deleted texts are overwritten in
    /// the file, and its write-ahead log is emptied. If other connections read for more than five seconds, the log still has them, which
    /// is logged.
    ///
    /// # Errors
    /// [`Error::Storage`]; data that were deleted before stay deleted.
    pub fn prune(&self, prune: Prune) -> Result<Pruned, Error> {
        let mut pruned = Pruned::default();
        if let Some(before) = prune.runs {
            pruned.runs = self.delete(before, delete_runs)?;
        }
        if let Some(before) = prune.bodies {
            pruned.bodies = self.delete(before, delete_bodies)?;
        }
        if let Some(before) = prune.rollups {
            let (hour, day) = (number(before.0 / HOUR), number(before.0 / DAY));
            let deleted = self.submit(move |connection| {
                let runs = connection.execute("DELETE FROM hourly_run WHERE hour < ?1", [hour])?;
                let days = connection.execute("DELETE FROM daily_run WHERE day < ?1", [day])?;
                let reasons = connection.execute("DELETE FROM daily_reason WHERE day < ?1", [day])?;
                let hours = connection.execute("DELETE FROM hourly_reason WHERE hour < ?1", [hour])?;
                Ok(runs + days + reasons + hours)
            });
            pruned.rollups = deleted.wait()? as u64;
        }
        if let Some(before) = prune.answers {
            pruned.answers = self.delete(before, |connection, before| {
                let sql =
                    "DELETE FROM answer WHERE id IN (SELECT id FROM answer WHERE planned < ?1 LIMIT ?2)";
                connection.prepare_cached(sql)?.execute([before, PRUNED])
            })?;
        }
        if pruned != Pruned::default() {
            self.empty_log()?;
        }
        Ok(pruned)
    }

    /// Empties the write-ahead log, which has pages with the texts that were deleted.
    fn empty_log(&self) -> Result<(), Error> {
        /// The attempts in five seconds, between which others write.
        const TRIES: u32 = 20;
        let emptied = || {
            let writer = self.core().store.writer();
            let emptied = writer.busy_timeout(Duration::ZERO).and_then(|()| {
                let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
                writer.query_row(sql, [], |row| row.get::<_, bool>(0)).map(|is_busy| !is_busy)
            });
            writer.busy_timeout(PATIENCE).and(emptied).map_err(|error| Error::on(&writer, &error, true))
        };
        let mut tries = 0;
        while !emptied()? {
            tries += 1;
            if tries < TRIES {
                std::thread::sleep(PATIENCE / TRIES);
                continue;
            }
            let path = self.core().path_text();
            tracing::warn!(
                path,
                "others read the ledger: its file `-wal` has the deleted texts until they have closed it"
            );
            break;
        }
        Ok(())
    }

    /// Counts the answers of batches, and those that were asked for before a time.
    ///
    /// # Errors
    /// [`Error::Storage`].
    ///
    /// ```
    /// use formwork_core::Time;
    /// use formwork_ledger::{Ledger, Settings};
    ///
    /// let ledger = Ledger::in_memory(Settings::default())?;
    /// assert_eq!(ledger.answers(Time(0))?.calls, 0);
    /// # Ok::<(), formwork_ledger::Error>(())
    /// ```
    pub fn answers(&self, before: Time) -> Result<Answers, Error> {
        let sql = "SELECT (SELECT count(*) FROM spent), count(call), count(*) FILTER (WHERE outcome = 1),
            (SELECT coalesce(sum(micro_usd), 0) FROM spent), count(*) - count(ended),
            coalesce(sum(reserved) FILTER (WHERE ended IS NULL), 0), count(*) FILTER (WHERE planned < ?1) FROM answer";
        self.core().store.read(|connection| {
            connection.query_row(sql, [number(before.0)], |row| {
                let mut all = [0; 7];
                for (column, sum) in all.iter_mut().enumerate() {
                    *sum = count(row, column)?;
                }
                let [batches, calls, values, micro_usd, open, open_micro_usd, older] = all;
                Ok(Answers { batches, calls, values, micro_usd, open, open_micro_usd, older })
            })
        })
    }

    fn delete(
        &self,
        before: Time,
        chunk: fn(&Connection, i64) -> rusqlite::Result<usize>,
    ) -> Result<u64, Error> {
        let before = number(before.0);
        let mut deleted = 0;
        loop {
            let rows = self.submit(move |connection| {
                let rows = chunk(connection, before)?;
                give_back(connection)?;
                Ok(rows)
            });
            let rows = rows.wait()? as u64;
            deleted += rows;
            if rows == 0 {
                return Ok(deleted);
            }
        }
    }
}

fn delete_runs(connection: &Connection, before: i64) -> rusqlite::Result<usize> {
    let sql = "SELECT id FROM run WHERE ended < ?1 ORDER BY id LIMIT ?2";
    let mut rows = connection.prepare_cached(sql)?;
    let ids: Vec<i64> = rows.query_map([before, PRUNED], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for sql in [
        "DELETE FROM violation WHERE run = ?1",
        "DELETE FROM attempt WHERE run = ?1",
        "DELETE FROM body WHERE run = ?1",
        "DELETE FROM run WHERE id = ?1",
    ] {
        let mut delete = connection.prepare_cached(sql)?;
        for id in &ids {
            delete.execute([id])?;
        }
    }
    connection
        .prepare_cached(
            "DELETE FROM spending WHERE reserved_at < ?1 AND actual IS NOT NULL AND id IN
            (SELECT id FROM spending WHERE reserved_at < ?1 AND actual IS NOT NULL LIMIT ?2)",
        )?
        .execute([before, PRUNED])?;
    Ok(ids.len())
}

fn delete_bodies(connection: &Connection, before: i64) -> rusqlite::Result<usize> {
    let sql = "DELETE FROM body WHERE run IN
        (SELECT body.run FROM body JOIN run ON run.id = body.run WHERE run.ended < ?1 ORDER BY body.run LIMIT ?2)";
    connection.prepare_cached(sql)?.execute([before, PRUNED])
}

/// Shortens the file by the pages that are free.
fn give_back(connection: &Connection) -> rusqlite::Result<()> {
    let mut vacuum = connection.prepare_cached("PRAGMA incremental_vacuum")?;
    let mut rows = vacuum.query([])?;
    // Fetching a row of this statement frees pages.
    while rows.next()?.is_some() {}
    Ok(())
}
