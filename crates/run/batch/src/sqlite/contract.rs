//! Rows that are opened again: rejected ones, and those of a new contract.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use rusqlite::params;
use serde_json::Value;

use super::tables::{self, int, numbers};
use super::{Batch, import, parts};
use crate::{BatchError, Control};

/// The stored values beside a new contract.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judged {
    /// The number of rows whose value satisfies it.
    pub valid: u64,
    /// The rows whose value violates it.
    changed: Vec<i64>,
    /// The ids of earlier values that satisfy it.
    returned: Vec<i64>,
    /// The number of rows that it leaves without a value, and that are asked about.
    pub open: u64,
}

impl Judged {
    /// Returns the number of rows whose value violates the contract.
    pub const fn changed(&self) -> usize {
        self.changed.len()
    }

    /// Returns the number of rows that get an earlier value back.
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
        let rows = self.reopen(
            "SELECT number FROM rows WHERE state = 2 AND bad = 0 AND leader IS NULL".to_owned(),
            String::new(),
            true,
        )?;
        self.view.set_control(Control::Run)?;
        Ok(rows)
    }

    /// Judges the stored values by a new contract: those of the rows, and those that were set aside before. `keeps` receives the contract
    /// under which a value was made, and the value.
    ///
    /// # Errors
    /// [`BatchError::Store`].
    pub fn judge(&self, keeps: impl Fn(&Value, &Value) -> bool) -> Result<Judged, BatchError> {
        let askable = self.view.askable()?;
        let current = &self.view.spec.contract;
        Ok(self.view.database.read(|file| {
            let satisfies = |contract: &Value, line: &str| {
                let line: Option<Value> = serde_json::from_str(line).ok();
                line.as_ref().and_then(|line| line.get("value")).is_some_and(|value| keeps(contract, value))
            };
            let mut judged = Judged::default();
            let mut select = file.prepare(
                "SELECT number, line FROM results JOIN rows USING (number) WHERE state = 1 AND leader IS NULL",
            )?;
            let (mut rows, mut kept) = (select.query([])?, BTreeSet::new());
            while let Some(row) = rows.next()? {
                let number: i64 = row.get(0)?;
                if satisfies(current, row.get_ref(1)?.as_str()?) {
                    kept.insert(number);
                } else {
                    judged.changed.push(number);
                }
            }
            judged.valid = kept.len() as u64;
            // The newest value of a row is tried first.
            let mut select = file.prepare(
                "SELECT earlier.id, number, contracts.contract, line FROM earlier
                 JOIN contracts ON contracts.id = earlier.contract ORDER BY earlier.id DESC",
            )?;
            let mut rows = select.query([])?;
            while let Some(row) = rows.next()? {
                let number = row.get(1)?;
                let contract = serde_json::from_str(row.get_ref(2)?.as_str()?).unwrap_or_default();
                if !kept.contains(&number) && satisfies(&contract, row.get_ref(3)?.as_str()?) {
                    kept.insert(number);
                    judged.returned.push(row.get(0)?);
                }
            }
            judged.open = askable.saturating_sub(kept.len() as u64);
            Ok(judged)
        })?)
    }

    /// Replaces the contract of the batch. Values that satisfy it stay or return, as [`judge`](Self::judge) found; all other rows start
    /// over, and their values are set aside for a later contract. Returns the number of rows that have no result.
    ///
    /// # Errors
    /// [`BatchError::Store`].
    pub fn replace_contract(&mut self, contract: Value, judged: Judged) -> Result<u64, BatchError> {
        let listed = |numbers: &[i64]| {
            let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
            numbers.join(",")
        };
        let query = format!(
            "SELECT number FROM rows WHERE bad = 0 AND leader IS NULL AND (state = 2 OR number IN ({}))",
            listed(&judged.changed)
        );
        self.reopen(query, listed(&judged.returned), false)?;
        let stored = contract.clone();
        self.view
            .database
            .write(move |file| {
                // A run that has begun belongs to the old contract; its calls stay counted.
                file.execute(
                    "UPDATE rows SET era = era + 1 WHERE number IN (SELECT number FROM states)",
                    [],
                )?;
                file.execute("DELETE FROM states", [])?;
                tables::set(file, "contract", &stored)
            })
            .wait()?;
        self.view.spec.contract = contract;
        Ok(self.view.progress()?.open())
    }

    /// Opens the rows again that a query names, sets their results aside, and takes those back whose ids are listed. The calls of the rows
    /// stay in their history, or the rows begin a new era.
    fn reopen(&self, query: String, returned: String, keeps_history: bool) -> Result<u64, BatchError> {
        let contract = self.view.spec.contract.to_string();
        let part_rows = self.view.spec.part_rows;
        let (rows, parts) = self
            .view
            .database
            .write(move |file| {
                file.execute_batch("CREATE TEMP TABLE IF NOT EXISTS again (number INTEGER PRIMARY KEY); DELETE FROM again")?;
                file.execute(&format!("INSERT INTO again {query}"), [])?;
                if keeps_history {
                    file.execute(
                        "INSERT OR REPLACE INTO states SELECT number, json_object('history', coalesce(json_extract(line, '$.calls'), json_extract(line, '$.attempts')))
                         FROM results WHERE number IN (SELECT number FROM again)",
                        [],
                    )?;
                } else {
                    file.execute("UPDATE rows SET era = era + 1 WHERE number IN (SELECT number FROM again)", [])?;
                }
                file.execute("INSERT OR IGNORE INTO contracts (contract) VALUES (?1)", [&contract])?;
                file.execute(
                    "INSERT INTO earlier (number, contract, line) SELECT number, (SELECT id FROM contracts WHERE contract = ?1), line
                     FROM results WHERE number IN (SELECT number FROM again)",
                    [&contract],
                )?;
                file.execute("DELETE FROM results WHERE number IN (SELECT number FROM again)", [])?;
                file.execute(
                    &format!("INSERT OR REPLACE INTO results SELECT number, line FROM earlier WHERE id IN ({returned})"),
                    [],
                )?;
                file.execute(
                    &format!("INSERT OR IGNORE INTO again SELECT number FROM earlier WHERE id IN ({returned})"),
                    [],
                )?;
                let mut select = file.prepare(
                    "SELECT DISTINCT number / ?1 FROM rows
                     WHERE number IN (SELECT number FROM again) OR leader IN (SELECT number FROM again)",
                )?;
                let parts = numbers(&mut select, [int(part_rows)])?;
                let rows = file.execute(
                    "UPDATE rows SET state = EXISTS (SELECT 1 FROM results WHERE results.number = coalesce(leader, rows.number))
                     WHERE number IN (SELECT number FROM again) OR leader IN (SELECT number FROM again)",
                    [],
                )?;
                for part in &parts {
                    file.execute(
                        "UPDATE parts SET written = 0, open = (SELECT count(*) FROM rows WHERE state = 0
                         AND number >= part * ?2 AND number < (part + 1) * ?2) WHERE part = ?1",
                        params![int(*part), int(part_rows)],
                    )?;
                }
                file.execute(
                    "UPDATE totals SET accepted = (SELECT count(*) FROM rows WHERE state = 1),
                     rejected = (SELECT count(*) FROM rows WHERE state = 2)",
                    [],
                )?;
                // Only rows with an invalid input stay rejected, so only their reason is kept.
                file.execute("DELETE FROM reasons WHERE reason <> ?1", [import::REASON])?;
                Ok((rows as u64, parts))
            })
            .wait()?;
        for part in parts {
            parts::write(&self.view.database, &self.view.folder, part, part_rows)?;
        }
        let progress = self.view.progress()?;
        self.accepted.store(progress.accepted, Ordering::Relaxed);
        self.rejected.store(progress.rejected, Ordering::Relaxed);
        Ok(rows)
    }
}
