//! Reservations of processes that ended.

use std::path::Path;

use rusqlite::params;

use crate::insert::{amount, number};
use crate::process::has_ended;
use crate::recover::recover;
use crate::{Error, Ledger};

/// Reservations of processes that ended before they settled them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Released {
    /// The number of reservations.
    pub count: u64,
    /// Their sum, in millionths of a US dollar: the most that their calls have cost.
    pub amount: u64,
}

/// Reservations of processes that ended.
impl Ledger {
    /// Records the runs that killed processes left, as [`Ledger::open`] does, and releases the other reservations of processes that ended
    /// before they settled them, so that budgets have them again. The cost of their
    /// calls is not known: it is between nothing and [`Released::amount`]. Reservations of processes that run are left as they are. Blocks
    /// the thread; a service calls it when it starts.
    ///
    /// # Errors
    /// [`Error::Storage`].
    ///
    /// ```
    /// use formwork_ledger::{Ledger, Settings};
    ///
    /// let ledger = Ledger::in_memory(Settings::default())?;
    /// assert_eq!(ledger.release_ended()?.count, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn release_ended(&self) -> Result<Released, Error> {
        let Some(place) = self.core().place().map(Path::to_owned) else { return Ok(Released::default()) };
        recover(&self.core().store, &place);
        let processes: Vec<String> = self.core().store.read(|connection| {
            let sql = "SELECT DISTINCT process FROM spending WHERE actual IS NULL AND process IS NOT NULL";
            connection.prepare_cached(sql)?.query_map([], |row| row.get(0))?.collect()
        })?;
        let mut released = Released::default();
        for process in processes.into_iter().filter(|process| has_ended(&place, process)) {
            let (count, sum) = self
                .submit(move |connection| {
                    let sql = "SELECT key, count(*), sum(reserved) FROM spending
                        WHERE process = ?1 AND actual IS NULL GROUP BY key";
                    let mut statement = connection.prepare_cached(sql)?;
                    let rows = statement.query_map([&process], |row| {
                        Ok((
                            row.get::<_, i64>(0)?,
                            row.get::<_, i64>(1)?,
                            amount(row, 2)?.unwrap_or_default(),
                        ))
                    })?;
                    let (mut count, mut sum) = (0_u64, 0_u64);
                    for row in rows.collect::<rusqlite::Result<Vec<_>>>()? {
                        connection.execute(
                            "UPDATE key SET held = max(held - ?2, 0) WHERE id = ?1",
                            params![row.0, number(row.2)],
                        )?;
                        count += row.1.unsigned_abs();
                        sum = sum.saturating_add(row.2);
                    }
                    let sql = "UPDATE spending SET actual = 0 WHERE process = ?1 AND actual IS NULL";
                    connection.execute(sql, [&process])?;
                    Ok((count, sum))
                })
                .wait()?;
            released.count += count;
            released.amount = released.amount.saturating_add(sum);
        }
        Ok(released)
    }
}
