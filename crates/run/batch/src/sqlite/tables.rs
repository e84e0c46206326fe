//! The statements on the tables of a batch. Each function runs inside of a transaction of the writer, or on the reader.

use std::collections::BTreeMap;

use formwork_core::{CallRecord, Usage};
use rusqlite::{Connection, OptionalExtension as _, Params, Statement, params};
use serde_json::Value;

use crate::{Progress, RowEnd, RowState};

/// Returns the column type for a number that never exceeds it in practice.
pub(super) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn nat(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// Returns the numbers that a query selects.
pub(super) fn numbers(select: &mut Statement<'_>, params: impl Params) -> rusqlite::Result<Vec<u64>> {
    select.query_map(params, |row| row.get(0).map(nat))?.collect()
}

/// Adds the calls of a row that are not there yet, and counts them.
fn add_calls<'c>(
    file: &Connection,
    number: u64,
    calls: impl Iterator<Item = &'c CallRecord>,
) -> rusqlite::Result<()> {
    let (mut new, mut usage, mut micro_usd, mut unpriced) = (0_i64, Usage::default(), 0_u64, 0_i64);
    let mut insert = file.prepare_cached(
        "INSERT OR IGNORE INTO attempts
         VALUES (?1, (SELECT era FROM rows WHERE number = ?1), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?;
    for (nth, call) in (0_i64..).zip(calls) {
        let failure = call.verdict.failure();
        let violation = failure.and_then(|failure| failure.violations().first());
        let added = insert.execute(params![
            int(number),
            nth,
            int(call.started.0),
            int(call.ended.0),
            call.target,
            failure.map_or("accepted", |failure| failure.class()),
            violation.map(|violation| &violation.rule),
            int(call.usage.input_tokens),
            int(call.usage.output_tokens),
            call.cost.micro_usd.map(int),
        ])?;
        if added > 0 {
            new += 1;
            usage = usage.plus(call.usage);
            micro_usd = micro_usd.saturating_add(call.cost.micro_usd.unwrap_or_default());
            unpriced += i64::from(call.cost.micro_usd.is_none());
        }
    }
    if new > 0 {
        let mut update = file.prepare_cached(
            "UPDATE totals SET calls = calls + ?1, input_tokens = input_tokens + ?2, output_tokens = output_tokens + ?3,
             micro_usd = micro_usd + ?4, unpriced = unpriced + ?5",
        )?;
        update.execute(params![
            new,
            int(usage.input_tokens),
            int(usage.output_tokens),
            int(micro_usd),
            unpriced
        ])?;
    }
    Ok(())
}

/// Stores the state of an open row.
pub(super) fn checkpoint(
    file: &Connection,
    number: u64,
    state: &RowState,
    text: &str,
) -> rusqlite::Result<()> {
    add_calls(file, number, state.calls())?;
    let mut insert = file.prepare_cached(
        "INSERT OR REPLACE INTO states SELECT ?1, ?2 WHERE EXISTS (SELECT 1 FROM rows WHERE number = ?1 AND state = 0)",
    )?;
    insert.execute(params![int(number), text]).map(|_| ())
}

/// The changes that the result of a row made.
#[derive(Debug, Default)]
pub(super) struct Finished {
    /// The rows that have a result now: the row and those that follow it; 0 if it had one before.
    pub(super) rows: u64,
    /// The files of results whose rows all have a result now.
    pub(super) whole: Vec<u64>,
}

/// Stores the result of a row, and with it that of the rows with the same input.
pub(super) fn finish(
    file: &Connection,
    number: u64,
    end: &RowEnd,
    line: &str,
    part_rows: u64,
    has_followers: bool,
) -> rusqlite::Result<Finished> {
    add_calls(file, number, end.calls().iter())?;
    let state = if end.is_accepted() { 1 } else { 2 };
    let changed = file
        .prepare_cached("UPDATE rows SET state = ?2 WHERE number = ?1 AND state = 0")?
        .execute(params![int(number), state])?;
    if changed == 0 {
        return Ok(Finished::default());
    }
    file.prepare_cached("INSERT OR REPLACE INTO results VALUES (?1, ?2)")?
        .execute(params![int(number), line])?;
    file.prepare_cached("DELETE FROM states WHERE number = ?1")?.execute([int(number)])?;
    let mut numbers = vec![number];
    if has_followers {
        let mut followers = file
            .prepare_cached("UPDATE rows SET state = ?2 WHERE leader = ?1 AND state = 0 RETURNING number")?;
        numbers.extend(self::numbers(&mut followers, params![int(number), state])?);
    }
    let rows = numbers.len() as u64;
    let (accepted, rejected) = if end.is_accepted() { (rows, 0) } else { (0, rows) };
    file.prepare_cached("UPDATE totals SET accepted = accepted + ?1, rejected = rejected + ?2")?
        .execute(params![int(accepted), int(rejected)])?;
    if let Some(reason) = end.reason() {
        add_reason(file, &reason, rows)?;
    }
    let mut whole = Vec::new();
    for number in numbers {
        let part = number / part_rows;
        let open: i64 = file
            .prepare_cached("UPDATE parts SET open = open - 1, written = 0 WHERE part = ?1 RETURNING open")?
            .query_row([int(part)], |row| row.get(0))?;
        if open == 0 {
            whole.push(part);
        }
    }
    Ok(Finished { rows, whole })
}

pub(super) fn add_reason(file: &Connection, reason: &str, rows: u64) -> rusqlite::Result<()> {
    file.prepare_cached(
        "INSERT INTO reasons VALUES (?1, ?2) ON CONFLICT (reason) DO UPDATE SET count = count + ?2",
    )?
    .execute(params![reason, int(rows)])
    .map(|_| ())
}

/// Recounts the rows of each file of results.
pub(super) fn count_parts(file: &Connection, part_rows: u64) -> rusqlite::Result<()> {
    file.execute(
        "INSERT OR REPLACE INTO parts SELECT number / ?1, sum(state = 0), 0 FROM rows GROUP BY 1",
        [int(part_rows)],
    )
    .map(|_| ())
}

pub(super) fn progress(file: &Connection) -> rusqlite::Result<Progress> {
    let mut progress = file.query_row(
        "SELECT rows, accepted, rejected, calls, input_tokens, output_tokens, micro_usd, unpriced,
         (SELECT count(*) FROM states) FROM totals",
        [],
        |row| {
            let nat = |nth| row.get::<_, i64>(nth).map(nat);
            Ok(Progress {
                rows: nat(0)?,
                accepted: nat(1)?,
                rejected: nat(2)?,
                calls: nat(3)?,
                input_tokens: nat(4)?,
                output_tokens: nat(5)?,
                micro_usd: nat(6)?,
                unpriced: nat(7)?,
                begun: nat(8)?,
                reasons: BTreeMap::new(),
            })
        },
    )?;
    let mut reasons = file.prepare("SELECT reason, count FROM reasons")?;
    let found = reasons.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1).map(nat)?)))?;
    progress.reasons = found.collect::<Result<_, _>>()?;
    Ok(progress)
}

pub(super) fn get(file: &Connection, key: &str) -> rusqlite::Result<Option<Value>> {
    let text: Option<String> = file
        .prepare_cached("SELECT value FROM batch WHERE key = ?1")?
        .query_row([key], |row| row.get(0))
        .optional()?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
}

pub(super) fn set(file: &Connection, key: &str, value: &Value) -> rusqlite::Result<()> {
    if value.is_null() {
        return file.execute("DELETE FROM batch WHERE key = ?1", [key]).map(|_| ());
    }
    file.execute("INSERT OR REPLACE INTO batch VALUES (?1, ?2)", params![key, value.to_string()]).map(|_| ())
}
