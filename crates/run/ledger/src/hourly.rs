//! Rollups: the runs of each hour, and why calls failed.

use formwork_core::Time;
use rusqlite::{Row, params};
use serde::Serialize;

use crate::insert::{DAY, HOUR, count, number};
use crate::{Error, Ledger};

/// The runs of one hour with the same contract, model and outcome, added up.
///
/// ```
/// use formwork_core::Time;
/// use formwork_ledger::{Ledger, RunRecord, Settings};
///
/// let ledger = Ledger::in_memory(Settings::default())?;
/// ledger.record(RunRecord::new("extract", Time(1_795_000_000_000)));
/// ledger.flush_blocking()?;
/// let hours = ledger.hourly_runs(None, None)?;
/// assert_eq!((hours[0].runs, hours[0].outcome.as_str()), (1, "ok"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct HourlyRuns {
    /// The start of the hour.
    pub hour: Time,
    /// The name of the contract, else its digest, else empty.
    pub contract: String,
    /// The model.
    pub model: String,
    /// The outcome of the runs; see [`RunOutcome::name`](crate::RunOutcome::name).
    pub outcome: String,
    /// The number of runs that began in this hour.
    pub runs: u64,
    /// The number of calls of these runs.
    pub calls: u64,
    /// Tokens of the prompts.
    pub input_tokens: u64,
    /// Tokens of the answers.
    pub output_tokens: u64,
    /// The known cost in millionths of a US dollar.
    pub micro_usd: u64,
    /// The number of runs with an unknown cost.
    pub unpriced: u64,
    /// The sum of the durations of the runs, in milliseconds.
    pub millis: u64,
}

/// The number of calls that failed for the same reason in one hour.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct HourlyReason {
    /// The start of the hour of the runs.
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
    /// Returns the runs of the hours from `since` until before `until`, by contract, model and outcome, oldest hour first.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub fn hourly_runs(&self, since: Option<Time>, until: Option<Time>) -> Result<Vec<HourlyRuns>, Error> {
        let sql = "SELECT hour, contract, model, outcome, runs, attempts, input_tokens, output_tokens, micro_usd, unpriced, millis
            FROM hourly_run WHERE hour >= ?1 AND hour < ?2 ORDER BY hour, contract, model, outcome";
        self.hours(sql, since, until, |row| {
            Ok(HourlyRuns {
                hour: hour(row)?,
                contract: row.get(1)?,
                model: row.get(2)?,
                outcome: row.get(3)?,
                runs: count(row, 4)?,
                calls: count(row, 5)?,
                input_tokens: count(row, 6)?,
                output_tokens: count(row, 7)?,
                micro_usd: count(row, 8)?,
                unpriced: count(row, 9)?,
                millis: count(row, 10)?,
            })
        })
    }

    /// Returns why calls failed in the hours from `since` until before `until`, oldest hour first: what runs were retried or
    /// given up for.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub fn hourly_reasons(
        &self,
        since: Option<Time>,
        until: Option<Time>,
    ) -> Result<Vec<HourlyReason>, Error> {
        let sql = "SELECT hour, class, path, model, contract, count FROM hourly_reason WHERE hour >= ?1 AND hour < ?2
            ORDER BY hour, class, path, model, contract";
        self.hours(sql, since, until, reason)
    }

    /// Returns why calls failed since the day (UTC) of `since`, added up: at most `max` reasons, the most frequent first. With a
    /// contract, those of it alone. `hour` is the beginning of the first day of a reason.
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

    fn hours<T>(
        &self,
        sql: &str,
        since: Option<Time>,
        until: Option<Time>,
        read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, Error> {
        let since = since.map_or(0, |time| number(time.0 / HOUR));
        let until = until.map_or(i64::MAX, |time| number(time.0.div_ceil(HOUR)));
        self.core().store.read(|connection| {
            connection.prepare_cached(sql)?.query_map(params![since, until], |row| read(row))?.collect()
        })
    }
}

fn hour(row: &Row<'_>) -> rusqlite::Result<Time> {
    Ok(Time(count(row, 0)?.saturating_mul(HOUR)))
}

fn reason(row: &Row<'_>) -> rusqlite::Result<HourlyReason> {
    Ok(HourlyReason {
        hour: hour(row)?,
        class: row.get(1)?,
        path: row.get(2)?,
        model: row.get(3)?,
        contract: row.get(4)?,
        count: count(row, 5)?,
    })
}
