//! Figures of the last runs of a period, for pages.

use formwork_core::Time;
use rusqlite::params;
use serde::Serialize;

use crate::insert::{count, number};
use crate::query::SKEW;
use crate::{Error, Ledger, RecordId};

/// Figures of the last runs of a period: of 10,000 runs at most, so that they cost the same for any ledger.
///
/// ```
/// use formwork_core::Time;
/// use formwork_ledger::{Ledger, RunRecord, Settings};
///
/// let ledger = Ledger::in_memory(Settings::default())?;
/// let mut run = RunRecord::new("extract", Time(1_795_000_000_000));
/// run.ended = Time(run.started.0 + 250);
/// ledger.record(run);
/// ledger.flush_blocking()?;
/// let recent = ledger.recent(Time(1_795_000_000_000))?;
/// assert_eq!((recent.runs, recent.median_ms, recent.p95_ms), (1, 250, 250));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Recent {
    /// The number of runs that these figures are of, without runs that the cache answered.
    pub runs: u64,
    /// The number of them that were accepted with at most one call.
    pub first_try: u64,
    /// The median of their durations, in milliseconds; 0 without runs.
    pub median_ms: u64,
    /// The duration that 95 % of them did not exceed, in milliseconds; 0 without runs.
    pub p95_ms: u64,
}

/// The maximum number of runs that [`Recent`] reads.
const MAX: u32 = 10_000;

impl Ledger {
    /// Returns figures of the last 10,000 runs that began at `since` or later. Runs that wait in memory are not among them.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub fn recent(&self, since: Time) -> Result<Recent, Error> {
        // Ids grow with time, so the key of the table bounds what is read.
        let first = RecordId::at(Time(since.0.saturating_sub(SKEW))).0;
        let sql = "SELECT max(ended - started, 0), attempts <= 1 AND outcome = 'ok' FROM run
            WHERE id >= ?1 AND started >= ?2 AND NOT cached ORDER BY id DESC LIMIT ?3";
        let rows: Vec<(u64, bool)> = self.core().store.read(|connection| {
            let mut rows = connection.prepare_cached(sql)?;
            rows.query_map(params![first, number(since.0), MAX], |row| Ok((count(row, 0)?, row.get(1)?)))?
                .collect()
        })?;
        let mut millis: Vec<u64> = rows.iter().map(|(millis, _)| *millis).collect();
        millis.sort_unstable();
        let rank = |percent: usize| {
            let nth = (millis.len() * percent).div_ceil(100).saturating_sub(1);
            millis.get(nth).copied().unwrap_or_default()
        };
        Ok(Recent {
            runs: rows.len() as u64,
            first_try: rows.iter().filter(|(_, first)| *first).count() as u64,
            median_ms: rank(50),
            p95_ms: rank(95),
        })
    }
}
