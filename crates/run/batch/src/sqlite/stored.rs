//! Stored answers beside the rows: rows that they finish, and rows that are opened again.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use rusqlite::{Connection, params};
use serde_json::Value;

use super::tables::{self, Asked, int, is_of, keeps, nat};
use super::{Batch, import, parts};
use crate::question::Question;
use crate::{BadRow, BatchError, Control, Row};

/// The stored values beside the rows and the contract of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judged {
    /// The number of rows whose value satisfies the contract.
    pub valid: u64,
    /// The rows whose value violates it, or answers other instructions or examples.
    changed: Vec<u64>,
    /// The number of those whose value answers other instructions or examples.
    pub asked_otherwise: usize,
    /// Rows without a value, and the answers in the store that satisfy it.
    returned: Vec<(u64, i64)>,
    /// The number of rows that have no value afterwards, and that are asked about.
    pub open: u64,
}

impl Judged {
    /// Returns the number of rows whose value violates the contract, or answers other instructions or examples.
    pub const fn changed(&self) -> usize {
        self.changed.len()
    }

    /// Returns the number of rows that get a value of the store.
    pub const fn returned(&self) -> usize {
        self.returned.len()
    }
}

impl Batch {
    /// Opens the rejected rows again, for [`Engine`](crate::Engine)s to ask about them once more; rows that cannot be asked about
    /// stay rejected. Takes a `cancel` back. Returns the number of rows.
    ///
    /// # Errors
    /// [`BatchError::Store`].
    pub fn retry(&self) -> Result<u64, BatchError> {
        let asked = self.asked();
        let rows = self.change(move |file| {
            file.execute(
                "INSERT INTO again SELECT number FROM rows WHERE state = 2 AND bad = 0 AND leader IS NULL",
                [],
            )?;
            file.execute("UPDATE rows SET era = era + 1 WHERE number IN (SELECT number FROM again)", [])?;
            // The calls of a row stay in its history, and are counted already.
            file.execute(
                "INSERT INTO answer (batch, row, era, call, input, target, name, prompt, sampling, sample, contract, planned, ended,
                 verdict, micro_usd, state)
                 SELECT ?1, key, rows.era, nullif(json_array_length(calls), 0) - 1, input, '', '', prompt, sampling, sample,
                 contract, ended, ended, '', 0, json_object('history', json(calls))
                 FROM rows JOIN (SELECT *, coalesce(line ->> '$.calls', line ->> '$.attempts', '[]') AS calls FROM answer) AS answer
                 ON answer.id = rows.answer WHERE number IN (SELECT number FROM again)",
                [&asked.batch],
            )?;
            reopen(file)
        })?;
        self.view.set_control(Control::Run)?;
        self.session().control = None;
        Ok(rows)
    }

    /// Judges the values of the rows, and those that the store has for the open rows: the answers to this question about the same
    /// texts, whichever batch paid for them, and earlier values of the rows. `satisfies` decides about a value that was made under
    /// another contract than this one, and gets the text of its row as well.
    ///
    /// # Errors
    /// [`BatchError::Store`].
    pub fn judge(
        &self,
        contract: &Value,
        question: &Question,
        satisfies: impl Fn(&Value, &str) -> bool,
    ) -> Result<Judged, BatchError> {
        let askable = self.view.askable()?;
        let asked = Asked::new(self.view.id.clone(), question.clone(), contract);
        Ok(self.view.database.read(|file| {
            let keeps = |row: &rusqlite::Row<'_>| {
                let text = row.get_ref("text")?.as_str()?;
                keeps(row, &asked.contract, |value| satisfies(value, text))
            };
            let mut judged = Judged::default();
            let mut select = file.prepare(
                "SELECT number, contract, line, prompt, inputs.input AS text FROM rows JOIN inputs USING (number)
                 JOIN answer ON answer.id = rows.answer WHERE rows.state = 1 AND leader IS NULL",
            )?;
            let (mut rows, mut changed) = (select.query([])?, BTreeSet::new());
            while let Some(row) = rows.next()? {
                let is_asked_so = row.get_ref("prompt")?.as_str()? == question.prompt;
                judged.asked_otherwise += usize::from(!is_asked_so);
                if is_asked_so && keeps(row)? {
                    judged.valid += 1;
                } else {
                    changed.insert(nat(row.get(0)?));
                }
            }
            // The newest answer is tried first.
            let mut select = file.prepare(
                "SELECT number, answer.id, contract, line, target, answer.batch = ?1 AS own, sampling, sample, rows.state = 1 AS has_value,
                 inputs.input AS text FROM rows JOIN inputs USING (number) JOIN answer ON answer.input = digest AND prompt = ?2 AND outcome = 1
                 WHERE bad = 0 AND leader IS NULL AND (rows.state = 0 OR rows.answer <> answer.id)
                 ORDER BY number, answer.id DESC",
            )?;
            let mut rows = select.query(params![asked.batch, question.prompt])?;
            let mut last = None;
            while let Some(row) = rows.next()? {
                let number = nat(row.get(0)?);
                if last == Some(number) || (row.get("has_value")? && !changed.contains(&number)) {
                    continue;
                }
                if (is_of(question, row)? || row.get("own")?) && keeps(row)? {
                    judged.returned.push((number, row.get(1)?));
                    last = Some(number);
                }
            }
            judged.changed = changed.into_iter().collect();
            judged.open = askable.saturating_sub(judged.valid + judged.returned.len() as u64);
            Ok(judged)
        })?)
    }

    /// Asks this question from now on, under this contract, and gives rows the stored values that [`judge`](Self::judge) found. Under
    /// another contract than before, rows with another value, rejected rows and rows in progress start over; their answers stay in the
    /// store. Returns the number of rows that have no result.
    ///
    /// # Errors
    /// [`BatchError::Store`].
    pub fn ask(&mut self, contract: Value, question: Question, judged: Judged) -> Result<u64, BatchError> {
        let asked = Asked::new(self.view.id.clone(), question, &contract);
        let is_new = contract != self.view.spec.contract;
        if is_new || !judged.returned.is_empty() {
            let (asked, batch, stored) = (asked.clone(), asked.batch.clone(), contract.clone());
            self.change(move |file| {
                let mut add = file.prepare("INSERT OR IGNORE INTO again VALUES (?1)")?;
                if is_new {
                    for number in &judged.changed {
                        add.execute([int(*number)])?;
                    }
                    // A run that has begun belongs to the old contract.
                    file.execute(
                        "INSERT OR IGNORE INTO again SELECT number FROM rows WHERE bad = 0 AND leader IS NULL AND state <> 1",
                        [],
                    )?;
                    file.execute("UPDATE rows SET era = era + 1 WHERE number IN (SELECT number FROM again)", [])?;
                    file.execute("UPDATE answer SET state = NULL WHERE batch = ?1 AND state IS NOT NULL", [&batch])?;
                    file.execute(
                        "UPDATE answer SET verdict = 'uncertain' WHERE batch = ?1 AND ended IS NULL AND verdict IS NULL",
                        [&batch],
                    )?;
                    reopen(file)?;
                    tables::set(file, "contract", &stored)?;
                }
                let mut take = file.prepare("UPDATE rows SET state = 1, answer = ?2 WHERE number = ?1")?;
                let mut clear = file.prepare(
                    "UPDATE answer SET state = NULL WHERE batch = ?1 AND row = (SELECT key FROM rows WHERE number = ?2)
                     AND state IS NOT NULL",
                )?;
                for (number, id) in &judged.returned {
                    add.execute([int(*number)])?;
                    take.execute(params![int(*number), id])?;
                    clear.execute(params![batch, int(*number)])?;
                    asked.drop_call(file, *number, true)?;
                }
                Ok(0)
            })?;
        }
        self.view.spec.contract = contract;
        self.set_asked(asked);
        Ok(self.view.progress()?.open())
    }

    /// Replaces the rows by those of a changed input, whose name is `source`. Rows with the same id and input keep their results and their calls; the others
    /// start without one.
    ///
    /// # Errors
    /// [`BatchError::Store`], and the error of the source, after which nothing is changed.
    pub fn replace_rows(
        &mut self,
        source: &str,
        rows: impl Iterator<Item = Result<Result<Row, BadRow>, BatchError>> + Send + 'static,
    ) -> Result<u64, BatchError> {
        self.parts.settle();
        let kept = import::replace(&self.view, source, &self.asked(), rows)?;
        source.clone_into(&mut self.view.spec.source);
        parts::remove_all(&self.view.folder)?;
        self.rows = self.view.progress()?.rows;
        self.written_again(self.unwritten("open = 0")?)?;
        Ok(kept)
    }

    /// Runs a change of rows that puts their numbers into `again`, and brings all else up to it.
    fn change(
        &self,
        change: impl FnOnce(&Connection) -> rusqlite::Result<u64> + Send + 'static,
    ) -> Result<u64, BatchError> {
        self.parts.settle();
        let part_rows = self.view.spec.part_rows;
        let (rows, parts) = self
            .view
            .database
            .write(move |file| {
                tables::begin_again(file)?;
                let rows = change(file)?;
                Ok((rows, tables::recount(file, part_rows)?))
            })
            .wait()?;
        self.written_again(parts)?;
        Ok(rows)
    }

    /// Writes files of results again whose rows have changed.
    fn written_again(&self, parts: Vec<u64>) -> Result<(), BatchError> {
        for part in parts {
            parts::write(&self.view.database, &self.view.folder, part, self.view.spec.part_rows)?;
        }
        let progress = self.view.progress()?;
        self.accepted.store(progress.accepted, Ordering::Relaxed);
        self.rejected.store(progress.rejected, Ordering::Relaxed);
        Ok(())
    }
}

/// Takes the results of the rows in `again` away; returns the number of rows.
fn reopen(file: &Connection) -> rusqlite::Result<u64> {
    let rows = file.execute(
        "UPDATE rows SET state = 0, answer = NULL WHERE number IN (SELECT number FROM again)
         OR leader IN (SELECT number FROM again)",
        [],
    )?;
    Ok(rows as u64)
}
