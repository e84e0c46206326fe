//! A group of runs becomes rows and adds to the rollups.

use std::borrow::Cow;
use std::collections::HashMap;

use formwork_core::Usage;
use rusqlite::{CachedStatement, Connection, Row, params};

use crate::bucket::bucket;
use crate::paths::general;
use crate::record::{ACCEPTED, PROBE, RunOutcome, RunRecord, StoredCall, ViolationRecord};

const RUN: &str = "INSERT OR IGNORE INTO run VALUES
    (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, NULL, ?22, ?23, ?24, ?25)";
const CALL: &str = "INSERT INTO attempt VALUES
    (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)";
const VIOLATION: &str = "INSERT INTO violation VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
const BODY: &str = "INSERT INTO body VALUES (?1, ?2, ?3)";
const HOURLY_RUN: &str = "INSERT INTO hourly_run VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
    ON CONFLICT DO UPDATE SET runs = runs + excluded.runs, attempts = attempts + excluded.attempts,
    input_tokens = input_tokens + excluded.input_tokens, output_tokens = output_tokens + excluded.output_tokens,
    micro_usd = micro_usd + excluded.micro_usd, unpriced = unpriced + excluded.unpriced, millis = millis + excluded.millis";
const DAILY_RUN: &str = "INSERT INTO daily_run VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
    ON CONFLICT DO UPDATE SET runs = runs + excluded.runs, first_try = first_try + excluded.first_try,
    failed = failed + excluded.failed, attempts = attempts + excluded.attempts, micro_usd = micro_usd + excluded.micro_usd,
    unpriced = unpriced + excluded.unpriced";
const DAILY_REASON: &str = "INSERT INTO daily_reason VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT DO UPDATE SET count = count + excluded.count";
const HOURLY_REASON: &str = "INSERT INTO hourly_reason VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT DO UPDATE SET count = count + excluded.count";

/// Milliseconds in an hour.
pub(crate) const HOUR: u64 = 3_600_000;

/// Milliseconds in a day.
pub(crate) const DAY: u64 = 24 * HOUR;

/// Returns a count, a time or an amount as SQLite keeps it: at most 2^43, which is nearly nine million dollars or the year 2248.
pub(crate) fn number(count: u64) -> i64 {
    /// So small that the sum of a million such numbers is an integer in SQLite.
    const MAX: i64 = 1 << 43;
    i64::try_from(count).unwrap_or(MAX).min(MAX)
}

/// Returns the number in a column that is never negative.
pub(crate) fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, i64>(column)?.max(0).unsigned_abs())
}

/// Returns the amount or the time in a column that may be empty.
pub(crate) fn amount(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<u64>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(|value| value.max(0).unsigned_abs()))
}

/// Inserts runs; returns how many were left out, because there is a run with the same id.
pub(crate) fn group(connection: &Connection, runs: &[RunRecord]) -> rusqlite::Result<usize> {
    let mut rollups = Rollups::default();
    let mut duplicates = 0;
    let mut statements = Statements {
        run: connection.prepare_cached(RUN)?,
        call: connection.prepare_cached(CALL)?,
        violation: connection.prepare_cached(VIOLATION)?,
        body: connection.prepare_cached(BODY)?,
    };
    for run in runs {
        if statements.insert(run)? {
            rollups.add(run);
        } else {
            duplicates += 1;
        }
    }
    rollups.write(connection)?;
    Ok(duplicates)
}

/// The statements of a group, prepared once for all of its runs.
struct Statements<'c> {
    run: CachedStatement<'c>,
    call: CachedStatement<'c>,
    violation: CachedStatement<'c>,
    body: CachedStatement<'c>,
}

impl Statements<'_> {
    fn insert(&mut self, run: &RunRecord) -> rusqlite::Result<bool> {
        let usage = &run.usage;
        let rows = self.run.execute(params![
            run.id.0,
            number(run.started.0),
            number(run.ended.0),
            run.outcome.name(),
            run.message,
            run.source,
            run.key.map(|key| key.0),
            run.user,
            run.contract,
            run.digest,
            run.target,
            run.model,
            list(&run.tags),
            number(run.call_count()),
            number(usage.input_tokens),
            number(usage.output_tokens),
            number(usage.cached_tokens),
            number(usage.reasoning_tokens),
            usage.estimated,
            run.micro_usd.map(number),
            run.cached,
            list(&run.warnings),
            list(&run.not_stated),
            run.trust.as_ref().map(json),
            run.evidence.as_ref().map(json),
        ])?;
        if rows == 0 {
            return Ok(false);
        }
        for (nth, call) in (1_i64..).zip(&run.calls) {
            self.insert_call(run, nth, call)?;
        }
        if run.body_bytes() > 0 {
            let answers: Vec<_> = run.calls.iter().map(|call| call.answer.as_deref()).collect();
            self.body.execute(params![run.id.0, run.request, json(&answers)])?;
        }
        Ok(true)
    }

    fn insert_call(&mut self, run: &RunRecord, place: i64, call: &StoredCall) -> rusqlite::Result<()> {
        let Usage { input_tokens, output_tokens, cached_tokens, reasoning_tokens, estimated, .. } =
            call.usage;
        self.call.execute(params![
            run.id.0,
            place,
            call.number,
            call.target,
            call.model,
            call.mode,
            call.class,
            call.message,
            number(call.started.0),
            number(call.ended.0),
            number(input_tokens),
            number(output_tokens),
            number(cached_tokens),
            number(reasoning_tokens),
            estimated,
            call.micro_usd.map(number),
            list(&call.patched),
            call.finish,
            call.answered,
        ])?;
        for (nth, violation) in (1_i64..).zip(&call.violations) {
            let ViolationRecord { class, path, message } = violation;
            self.violation.execute(params![run.id.0, place, nth, class, path, message])?;
        }
        Ok(())
    }
}

/// Returns a JSON array; `None` for an empty one.
fn list<T: serde::Serialize>(items: &[T]) -> Option<String> {
    (!items.is_empty()).then(|| json(items))
}

fn json<T: serde::Serialize + ?Sized>(value: &T) -> String {
    // Lists of strings, paths and warnings, and the record of histories can always be serialized.
    serde_json::to_string(value).unwrap_or_default()
}

fn add<const N: usize>(sums: &mut [i64; N], more: [u64; N]) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum = sum.saturating_add(number(more));
    }
}

/// The sums that a group adds to the hours.
#[derive(Default)]
struct Rollups<'a> {
    /// The sums of the columns from `runs` to `millis`, in their order.
    runs: HashMap<(i64, &'a str, &'a str, &'static str), [i64; 7]>,
    /// The sums of the columns from `runs` to `unpriced`, in their order.
    days: HashMap<(i64, i64, Cow<'a, str>, i64), [i64; 6]>,
    reasons: HashMap<(i64, &'a str, Cow<'a, str>, &'a str, &'a str), i64>,
}

impl<'a> Rollups<'a> {
    fn add(&mut self, run: &'a RunRecord) {
        let hour = number(run.started.0 / HOUR);
        let contract = run.contract_label();
        let sums = self.runs.entry((hour, contract, &run.model, run.outcome.name())).or_default();
        let millis = run.ended.0.saturating_sub(run.started.0);
        let more = [
            1,
            run.call_count(),
            run.usage.input_tokens,
            run.usage.output_tokens,
            run.micro_usd.unwrap_or(0),
            u64::from(run.micro_usd.is_none()),
            millis,
        ];
        add(sums, more);
        // A run that no model was called for says nothing about models.
        let is_called = !run.cached && run.call_count() > 0;
        let class = if is_called { bucket(millis) } else { -1 };
        let is_first = is_called && run.call_count() == 1 && run.outcome == RunOutcome::Ok;
        let more = [
            1,
            u64::from(is_first),
            u64::from(matches!(run.outcome, RunOutcome::Failed(_))),
            run.call_count(),
            run.micro_usd.unwrap_or(0),
            u64::from(run.micro_usd.is_none()),
        ];
        let day = number(run.started.0 / DAY);
        let key = run.key.map(|key| key.0.to_string()).unwrap_or_default();
        let names = ["".into(), contract.into(), run.model.as_str().into(), key.into()];
        for (dimension, name) in (0..).zip(names) {
            let sums = self.days.entry((day, dimension, name, class)).or_default();
            add(sums, more);
        }
        let is_rejected = |call: &&StoredCall| call.class != ACCEPTED && call.class != PROBE;
        for call in run.calls.iter().filter(is_rejected) {
            let model = call.model.as_str();
            let mut count = |class: &'a str, path| {
                *self.reasons.entry((hour, class, path, model, contract)).or_default() += 1;
            };
            if call.violations.is_empty() {
                count(&call.class, Cow::Borrowed(""));
            }
            for violation in &call.violations {
                count(&violation.class, general(&violation.path));
            }
        }
    }

    fn write(self, connection: &Connection) -> rusqlite::Result<()> {
        let mut insert = connection.prepare_cached(HOURLY_RUN)?;
        for ((hour, contract, model, outcome), sums) in self.runs {
            let [runs, calls, input, output, micro_usd, unpriced, millis] = sums;
            insert.execute(params![
                hour, contract, model, outcome, runs, calls, input, output, micro_usd, unpriced, millis
            ])?;
        }
        let mut insert = connection.prepare_cached(DAILY_RUN)?;
        for ((day, dimension, name, class), sums) in self.days {
            let [runs, first_try, failed, calls, micro_usd, unpriced] = sums;
            insert.execute(params![
                day, dimension, name, class, runs, first_try, failed, calls, micro_usd, unpriced
            ])?;
        }
        let mut hours = connection.prepare_cached(HOURLY_REASON)?;
        let mut days = connection.prepare_cached(DAILY_REASON)?;
        for ((hour, class, path, model, contract), count) in self.reasons {
            hours.execute(params![hour, class, path, model, contract, count])?;
            days.execute(params![hour / 24, class, path, model, contract, count])?;
        }
        Ok(())
    }
}
