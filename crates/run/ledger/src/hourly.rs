//! Rollups: why calls failed.

use formwork_core::Time;
use rusqlite::{Row, params};
use serde::Serialize;

use crate::insert::{DAY, HOUR, count, number};
use crate::{Error, Ledger};

/// The number of calls that failed for the same reason; see [`Ledger::reasons`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct HourlyReason {
    /// The start of the first day (UTC) of the runs.
    pub hour: Time,
    /// The class of the violation; of calls without one the class of the call, such as `timeout`.
    pub class: String,
    /// The path, with `[*]` for every index; empty for calls without a violation.
    pub path: String,
    /// The model.
    pub model: String,
    /// The name of the contract, else its digest, else empty.
    pub contract: String,
    /// The number of occurrences.
    pub count: u64,
}

pub(crate) const REASONS: &str = "SELECT min(day) * 24, class, path, model, contract, sum(count) AS n FROM daily_reason
    WHERE day >= ?1 AND (?2 IS NULL OR contract = ?2) GROUP BY class, path, model, contract ORDER BY n DESC LIMIT ?3";

impl Ledger {
    /// Returns why calls failed since the day (UTC) of `since`, added up: at most `max` reasons, the most frequent first. With a
    /// contract, those of it alone.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub fn reasons(
        &self,
        since: Time,
        contract: Option<&str>,
        max: usize,
    ) -> Result<Vec<HourlyReason>, Error> {
        self.core().store.read(|connection| {
            let values = params![number(since.0 / DAY), contract, number(max as u64)];
            connection.prepare_cached(REASONS)?.query_map(values, reason)?.collect()
        })
    }
}

fn reason(row: &Row<'_>) -> rusqlite::Result<HourlyReason> {
    Ok(HourlyReason {
        hour: Time(count(row, 0)?.saturating_mul(HOUR)),
        class: row.get(1)?,
        path: row.get(2)?,
        model: row.get(3)?,
        contract: row.get(4)?,
        count: count(row, 5)?,
    })
}
