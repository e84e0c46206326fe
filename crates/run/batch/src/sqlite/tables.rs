//! The statements on the tables of a batch and of the store. Each function runs inside of a transaction of the writer, or on the reader.

use std::collections::BTreeMap;

use formwork_core::{CallRecord, Time, Usage};
use rusqlite::{Connection, OptionalExtension as _, Params, Statement, params};
use serde_json::Value;

use crate::question::{Question, digest};
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

/// The columns that all answers of a batch in one process share.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    /// The id of the batch.
    pub(super) batch: String,
    pub(super) question: Question,
    /// The digest of the contract.
    pub(super) contract: String,
    /// The version of the prompt, if the contract names one.
    version: Option<String>,
}

impl Asked {
    pub(super) fn new(batch: String, question: Question, contract: &Value) -> Self {
        let version = contract
            .get("version")
            .map(|version| version.as_str().map_or(version.to_string(), str::to_owned));
        Self { batch, question, contract: digest(&contract.to_string()), version }
    }

    /// Adds an attempt for a row: one whose call is about to leave at this time, for at most this cost and under this handle, or one that
    /// made no call. Returns its id.
    fn insert(
        &self,
        file: &Connection,
        number: u64,
        target: &str,
        (planned, reserved, handle): (Time, Option<u64>, Option<&str>),
    ) -> rusqlite::Result<i64> {
        let Question { prompt, sampling, sample, .. } = &self.question;
        file.prepare_cached(
            "INSERT INTO answer (batch, row, era, input, target, name, prompt, sampling, sample, contract, version, planned, reserved,
                 model, handle)
             SELECT ?1, key, era, coalesce(digest, x''), ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13 FROM rows WHERE number = ?2",
        )?
        .execute(params![
            self.batch,
            int(number),
            self.question.identity(target),
            target,
            prompt,
            sampling,
            sample,
            self.contract,
            self.version,
            int(planned.0),
            reserved.map(int),
            self.question.model(target),
            handle
        ])?;
        Ok(file.last_insert_rowid())
    }

    /// Adds an attempt that made no call, and whose end is therefore known.
    fn insert_ended(&self, file: &Connection, number: u64, now: Time) -> rusqlite::Result<i64> {
        let id = self.insert(file, number, "", (now, None, None))?;
        file.prepare_cached("UPDATE answer SET ended = planned, verdict = '' WHERE id = ?1")?
            .execute([id])?;
        Ok(id)
    }

    /// Adds the call that a row is about to make. An earlier open one is uncertain, for at most this cost if its own was not known.
    pub(super) fn intend(
        &self,
        file: &Connection,
        number: u64,
        target: &str,
        call: (Time, Option<u64>, Option<&str>),
    ) -> rusqlite::Result<()> {
        file.prepare_cached(
            "UPDATE answer SET verdict = 'uncertain', reserved = coalesce(reserved, ?3)
             WHERE batch = ?1 AND row = (SELECT key FROM rows WHERE number = ?2) AND ended IS NULL AND verdict IS NULL",
        )?
        .execute(params![self.batch, int(number), call.1.map(int)])?;
        self.insert(file, number, target, call).map(|_| ())
    }

    /// Closes the open call of a row, which has no result: it was not made, or it is uncertain.
    pub(super) fn drop_call(
        &self,
        file: &Connection,
        number: u64,
        may_be_made: bool,
    ) -> rusqlite::Result<()> {
        file.prepare_cached(
            "UPDATE answer SET verdict = iif(?3, 'uncertain', ''), ended = iif(?3, NULL, planned)
             WHERE batch = ?1 AND row = (SELECT key FROM rows WHERE number = ?2) AND ended IS NULL AND verdict IS NULL",
        )?
        .execute(params![self.batch, int(number), may_be_made])
        .map(|_| ())
    }

    /// Completes the open call of a row with the last of these calls, adds the others that are not there yet, and counts them. Returns
    /// the last attempt of the row that has an end.
    pub(super) fn add_calls<'c>(
        &self,
        file: &Connection,
        number: u64,
        calls: impl Iterator<Item = &'c CallRecord>,
    ) -> rusqlite::Result<Option<i64>> {
        let (key, era): (i64, i64) = file
            .prepare_cached("SELECT key, era FROM rows WHERE number = ?1")?
            .query_row([int(number)], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let of_row = params![self.batch, key, era];
        let known: i64 = file
            .prepare_cached(
                "SELECT coalesce(max(call) + 1, 0) FROM answer WHERE batch = ?1 AND row = ?2 AND era = ?3",
            )?
            .query_row(of_row, |row| row.get(0))?;
        let mut new = (0_i64..).zip(calls).filter(|(nth, _)| *nth >= known).peekable();
        let (mut count, mut usage, mut micro_usd, mut unpriced) = (0_i64, Usage::default(), 0_u64, 0_i64);
        while let Some((nth, call)) = new.next() {
            let open = file
                .prepare_cached("SELECT id FROM answer WHERE batch = ?1 AND row = ?2 AND ended IS NULL AND verdict IS NULL")?
                .query_row(params![self.batch, key], |row| row.get(0))
                .optional()?
                .filter(|_| new.peek().is_none());
            let id: i64 = match open {
                Some(id) => id,
                None => self.insert(file, number, &call.target, (call.started, None, None))?,
            };
            let failure = call.verdict.failure();
            file.prepare_cached(
                "UPDATE answer SET call = ?2, ended = ?3, verdict = ?4, rule = ?5, input_tokens = ?6, output_tokens = ?7,
                 micro_usd = ?8, text = ?9, target = ?10, name = ?11, model = ?12, served = ?13 WHERE id = ?1",
            )?
            .execute(params![
                id,
                nth,
                int(call.ended.0),
                failure.map_or("accepted", |failure| failure.class()),
                failure.and_then(|failure| failure.violations().first()).map(|violation| &violation.rule),
                int(call.usage.input_tokens),
                int(call.usage.output_tokens),
                call.cost.micro_usd.map(int),
                Some(&*call.text).filter(|text| !text.is_empty()),
                self.question.identity(&call.target),
                call.target,
                self.question.model(&call.target),
                call.model
            ])?;
            count += 1;
            usage = usage.plus(call.usage);
            micro_usd = micro_usd.saturating_add(call.cost.micro_usd.unwrap_or_default());
            unpriced += i64::from(call.cost.micro_usd.is_none());
        }
        if count > 0 {
            file.prepare_cached(
                "INSERT INTO spent VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO UPDATE SET calls = calls + excluded.calls,
                 input_tokens = input_tokens + excluded.input_tokens, output_tokens = output_tokens + excluded.output_tokens,
                 micro_usd = micro_usd + excluded.micro_usd, unpriced = unpriced + excluded.unpriced",
            )?
            .execute(params![
                self.batch,
                count,
                int(usage.input_tokens),
                int(usage.output_tokens),
                int(micro_usd),
                unpriced
            ])?;
        }
        file.prepare_cached(
            "SELECT max(id) FROM answer WHERE batch = ?1 AND row = ?2 AND era = ?3 AND ended IS NOT NULL AND outcome IS NULL",
        )?
        .query_row(of_row, |row| row.get(0))
    }

    /// Forgets the runs of a row that is open no more, or whose run went on.
    fn clear(&self, file: &Connection, number: u64) -> rusqlite::Result<()> {
        file.prepare_cached(
            "UPDATE answer SET state = NULL WHERE batch = ?1 AND row = (SELECT key FROM rows WHERE number = ?2) AND state IS NOT NULL",
        )?
        .execute(params![self.batch, int(number)])
        .map(|_| ())
    }

    /// Stores the state of an open row.
    pub(super) fn checkpoint(
        &self,
        file: &Connection,
        number: u64,
        state: &RowState,
        text: &str,
    ) -> rusqlite::Result<()> {
        let last = self.add_calls(file, number, state.calls())?;
        let open = file
            .prepare_cached("SELECT 1 FROM rows WHERE number = ?1 AND state = 0")?
            .exists([int(number)])?;
        if !open {
            return Ok(());
        }
        self.clear(file, number)?;
        let id = last.map_or_else(|| self.insert_ended(file, number, state.stored), Ok)?;
        file.prepare_cached("UPDATE answer SET state = ?2 WHERE id = ?1")?
            .execute(params![id, text])
            .map(|_| ())
    }

    /// Adds an attempt with the result of a row to the row's last call.
    pub(super) fn end(
        &self,
        file: &Connection,
        number: u64,
        end: &RowEnd,
        line: &str,
        now: Time,
    ) -> rusqlite::Result<(i64, i64)> {
        let outcome = if end.is_accepted() { 1 } else { 2 };
        let last = self.add_calls(file, number, end.calls().iter())?;
        let id = last.map_or_else(|| self.insert_ended(file, number, now), Ok)?;
        file.prepare_cached("UPDATE answer SET outcome = ?2, line = ?3 WHERE id = ?1")?
            .execute(params![id, outcome, line])?;
        Ok((id, outcome))
    }

    /// Stores the result of a row, and with it that of the rows with the same input.
    pub(super) fn finish(
        &self,
        file: &Connection,
        number: u64,
        end: &RowEnd,
        line: &str,
        now: Time,
        part_rows: u64,
    ) -> rusqlite::Result<Finished> {
        let result = self.end(file, number, end, line, now)?;
        self.take(file, number, result, end.reason(), part_rows)
    }

    /// Returns the newest stored value for this question about the text of a row that was made under this contract or satisfies it.
    pub(super) fn stored(
        &self,
        file: &Connection,
        number: u64,
        satisfies: impl Fn(&Value) -> bool,
    ) -> rusqlite::Result<Option<i64>> {
        let mut select = file.prepare_cached(
            "SELECT answer.id, contract, line, target, sampling, sample FROM rows
             JOIN answer ON input = digest AND prompt = ?2 AND outcome = 1 WHERE number = ?1 ORDER BY answer.id DESC",
        )?;
        let mut rows = select.query(params![int(number), self.question.prompt])?;
        while let Some(row) = rows.next()? {
            if is_of(&self.question, row)? && keeps(row, &self.contract, &satisfies)? {
                return row.get(0).map(Some);
            }
        }
        Ok(None)
    }

    /// Gives a row a result, which is in this answer and has this state, and with it the rows with the same input.
    pub(super) fn take(
        &self,
        file: &Connection,
        number: u64,
        (id, state): (i64, i64),
        reason: Option<String>,
        part_rows: u64,
    ) -> rusqlite::Result<Finished> {
        self.clear(file, number)?;
        let changed = file
            .prepare_cached("UPDATE rows SET state = ?2, answer = ?3 WHERE number = ?1 AND state = 0")?
            .execute(params![int(number), state, id])?;
        if changed == 0 {
            return Ok(Finished::default());
        }
        let mut numbers = vec![number];
        let mut followers = file.prepare_cached(
            "UPDATE rows SET state = ?2, answer = ?3 WHERE leader = ?1 AND state = 0 RETURNING number",
        )?;
        numbers.extend(self::numbers(&mut followers, params![int(number), state, id])?);
        let rows = numbers.len() as u64;
        let (accepted, rejected) = if state == 1 { (rows, 0) } else { (0, rows) };
        file.prepare_cached("UPDATE totals SET accepted = accepted + ?1, rejected = rejected + ?2")?
            .execute(params![int(accepted), int(rejected)])?;
        if let Some(reason) = reason {
            add_reason(file, &reason, rows)?;
        }
        let mut whole = Vec::new();
        for number in numbers {
            let part = number / part_rows;
            let open: i64 = file
                .prepare_cached(
                    "UPDATE parts SET open = open - 1, written = 0 WHERE part = ?1 RETURNING open",
                )?
                .query_row([int(part)], |row| row.get(0))?;
            if open == 0 {
                whole.push(part);
            }
        }
        Ok(Finished { rows, whole })
    }
}

/// The changes that the result of a row made.
#[derive(Debug, Default)]
pub(super) struct Finished {
    /// The rows that have a result now: the row and those that follow it; 0 if it had one before.
    pub(super) rows: u64,
    /// The files of results whose rows all have a result now.
    pub(super) whole: Vec<u64>,
}

pub(super) fn add_reason(file: &Connection, reason: &str, rows: u64) -> rusqlite::Result<()> {
    file.prepare_cached(
        "INSERT INTO folder.reasons VALUES (?1, ?2) ON CONFLICT (reason) DO UPDATE SET count = count + ?2",
    )?
    .execute(params![reason, int(rows)])
    .map(|_| ())
}

/// Returns whether an answer to the same instructions and examples is one to this question.
pub(super) fn is_of(question: &Question, row: &rusqlite::Row<'_>) -> rusqlite::Result<bool> {
    Ok(row.get_ref("sampling")?.as_str()? == question.sampling
        && row.get::<_, u32>("sample")? == question.sample
        && question.asks(row.get_ref("target")?.as_str()?))
}

/// Returns whether a stored value satisfies the contract with this digest: it was made under it, or `satisfies` returns so.
pub(super) fn keeps(
    row: &rusqlite::Row<'_>,
    contract: &str,
    satisfies: impl Fn(&Value) -> bool,
) -> rusqlite::Result<bool> {
    if row.get_ref("contract")?.as_str()? == contract {
        return Ok(true);
    }
    let line: Option<Value> = serde_json::from_str(row.get_ref("line")?.as_str()?).ok();
    Ok(line.as_ref().and_then(|line| line.get("value")).is_some_and(satisfies))
}

/// Recounts the rows of each file of results.
pub(super) fn count_parts(file: &Connection, part_rows: u64) -> rusqlite::Result<()> {
    file.execute(
        "INSERT OR REPLACE INTO parts SELECT number / ?1, sum(state = 0), 0 FROM rows GROUP BY 1",
        [int(part_rows)],
    )
    .map(|_| ())
}

/// Brings rows that follow others, sums and files of results up to the states of rows. Returns the files that have to be written
/// again, if `again` has the numbers of the rows that changed.
pub(super) fn recount(file: &Connection, part_rows: u64) -> rusqlite::Result<Vec<u64>> {
    file.execute_batch(
        "UPDATE rows SET (state, answer) = (SELECT state, answer FROM rows AS lead WHERE lead.number = rows.leader)
         WHERE leader IS NOT NULL;
         UPDATE totals SET accepted = (SELECT count(*) FROM rows WHERE state = 1),
         rejected = (SELECT count(*) FROM rows WHERE state = 2);
         DELETE FROM folder.reasons;
         INSERT INTO folder.reasons SELECT iif(bad, 'input', json_extract(line, '$.error.class')
             || iif(rule IS NOT NULL AND json_extract(line, '$.error.class') = 'rejected', ' (' || rule || ')', '')), count(*)
         FROM rows JOIN answer ON answer.id = rows.answer WHERE rows.state = 2 GROUP BY 1",
    )?;
    let mut select = file.prepare(
        "SELECT DISTINCT number / ?1 FROM rows WHERE number IN (SELECT number FROM again) OR leader IN (SELECT number FROM again)",
    )?;
    let parts = numbers(&mut select, [int(part_rows)])?;
    for part in &parts {
        file.execute(
            "UPDATE parts SET written = 0, open = (SELECT count(*) FROM rows WHERE state = 0
             AND number >= part * ?2 AND number < (part + 1) * ?2) WHERE part = ?1",
            params![int(*part), int(part_rows)],
        )?;
    }
    Ok(parts)
}

/// Makes the temporary table of rows that change.
pub(super) fn begin_again(file: &Connection) -> rusqlite::Result<()> {
    file.execute_batch(
        "CREATE TEMP TABLE IF NOT EXISTS again (number INTEGER PRIMARY KEY); DELETE FROM again",
    )
}

/// Gives rows the results that the store has and a process did not come to note, because it died between the commits of both files. The
/// open calls of that process are uncertain.
pub(super) fn derive(file: &Connection, batch: &str, part_rows: u64) -> rusqlite::Result<()> {
    file.execute(
        "UPDATE answer SET verdict = 'uncertain' WHERE batch = ?1 AND ended IS NULL AND verdict IS NULL AND handle IS NULL",
        [batch],
    )?;
    begin_again(file)?;
    let found = file.execute(
        "INSERT INTO again SELECT number FROM rows JOIN answer ON answer.batch = ?1 AND row = key AND answer.era = rows.era
         WHERE rows.state = 0 AND bad = 0 AND outcome IS NOT NULL GROUP BY number",
        [batch],
    )?;
    if found > 0 {
        file.execute(
            "UPDATE rows SET (state, answer) = (SELECT outcome, id FROM answer WHERE batch = ?1 AND row = key
             AND answer.era = rows.era AND outcome IS NOT NULL ORDER BY id LIMIT 1) WHERE number IN (SELECT number FROM again)",
            [batch],
        )?;
        recount(file, part_rows)?;
    }
    Ok(())
}

/// Returns the progress. Without a process that works on the batch, its open calls without a handle are uncertain.
pub(super) fn progress(
    file: &Connection,
    batch: &str,
    has_process: impl Fn() -> bool,
) -> rusqlite::Result<Progress> {
    let mut progress = file.query_row("SELECT rows, accepted, rejected FROM totals", [], |row| {
        let nat = |nth| row.get::<_, i64>(nth).map(nat);
        Ok(Progress { rows: nat(0)?, accepted: nat(1)?, rejected: nat(2)?, ..Progress::default() })
    })?;
    let spent = file
        .prepare_cached(
            "SELECT calls, input_tokens, output_tokens, micro_usd, unpriced FROM spent WHERE batch = ?1",
        )?
        .query_row([batch], |row| {
            let nat = |nth| row.get::<_, i64>(nth).map(nat);
            Ok([nat(0)?, nat(1)?, nat(2)?, nat(3)?, nat(4)?])
        })
        .optional()?;
    [progress.calls, progress.input_tokens, progress.output_tokens, progress.micro_usd, progress.unpriced] =
        spent.unwrap_or_default();
    progress.begun = file
        .prepare_cached("SELECT count(*) FROM answer WHERE batch = ?1 AND state IS NOT NULL")?
        .query_row([batch], |row| row.get(0).map(nat))?;
    let mut open = file.prepare_cached(
        "SELECT verdict IS NULL, handle IS NULL, count(*), coalesce(sum(reserved), 0) FROM answer
         WHERE batch = ?1 AND ended IS NULL GROUP BY 1, 2",
    )?;
    let mut rows = open.query([batch])?;
    while let Some(row) = rows.next()? {
        let is_in_flight = row.get(0)? && (!row.get::<_, bool>(1)? || has_process());
        let (calls, reserved) = if is_in_flight {
            (&mut progress.in_flight, &mut progress.reserved_micro_usd)
        } else {
            (&mut progress.uncertain, &mut progress.uncertain_micro_usd)
        };
        *calls += nat(row.get(2)?);
        *reserved += nat(row.get(3)?);
    }
    let mut reasons = file.prepare("SELECT reason, count FROM folder.reasons")?;
    let found = reasons.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1).map(nat)?)))?;
    progress.reasons = found.collect::<Result<BTreeMap<_, _>, _>>()?;
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
