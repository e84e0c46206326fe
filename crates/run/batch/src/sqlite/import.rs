//! Taking the rows of an input over into a new batch, and comparing them with those of an older one.

use std::sync::{Arc, Mutex, PoisonError};

use formwork_core::{Error, ErrorKind, Time};
use formwork_ledger::Database;
use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::tables::{self, Asked, int};
use super::{Spec, View};
use crate::{BadRow, BatchError, MAX_INPUT, Row, RowEnd};

/// The reason by which rows are counted that cannot be asked about.
pub(super) const REASON: &str = "input";

type Source = dyn Iterator<Item = Result<Result<Row, BadRow>, BatchError>> + Send;

/// Stores the rows of a new batch in one transaction.
pub(super) fn import(
    database: &Database,
    spec: &Spec,
    asked: Asked,
    rows: impl Iterator<Item = Result<Result<Row, BadRow>, BatchError>> + Send + 'static,
) -> Result<(), BatchError> {
    let spec = spec.clone();
    in_one_write(database, rows, move |file, rows| {
        tables::set(file, "contract", &spec.contract)?;
        tables::set(file, "source", &Value::from(spec.source.as_str()))?;
        tables::set(file, "part_rows", &Value::from(spec.part_rows.max(1)))?;
        tables::set(file, "dedupe", &Value::from(spec.dedupe))?;
        all(file, &spec, &asked, 0, rows)
    })
}

/// Replaces the rows of a batch in one transaction; returns the number of those that are the same.
pub(super) fn replace(
    view: &View,
    source: &str,
    asked: &Asked,
    rows: impl Iterator<Item = Result<Result<Row, BadRow>, BatchError>> + Send + 'static,
) -> Result<u64, BatchError> {
    let (spec, source, asked) = (view.spec.clone(), Value::from(source), asked.clone());
    let kept = Arc::new(Mutex::new(0));
    let shared = Arc::clone(&kept);
    in_one_write(&view.database, rows, move |file, rows| {
        file.execute_batch(
            "CREATE TEMP TABLE before AS SELECT id, digest, key, era, state, answer FROM rows WHERE bad = 0;
             CREATE INDEX temp.before_by_id ON before (id);
             DELETE FROM rows; DELETE FROM inputs; DELETE FROM parts; DELETE FROM folder.reasons;
             UPDATE totals SET rows = 0, accepted = 0, rejected = 0",
        )?;
        let first: i64 =
            file.query_row("SELECT coalesce(max(key) + 1, 0) FROM before", [], |row| row.get(0))?;
        tables::set(file, "source", &source)?;
        all(file, &spec, &asked, tables::nat(first), rows)?;
        let same = file.execute(
            "UPDATE rows SET (key, era, state, answer) = (SELECT key, era, state, answer FROM before
                 WHERE before.id = rows.id AND before.digest = rows.digest)
             WHERE bad = 0 AND EXISTS (SELECT 1 FROM before WHERE before.id = rows.id AND before.digest = rows.digest)",
            [],
        )?;
        file.execute_batch("DROP TABLE before")?;
        tables::begin_again(file)?;
        tables::recount(file, spec.part_rows)?;
        tables::count_parts(file, spec.part_rows)?;
        *shared.lock().unwrap_or_else(PoisonError::into_inner) = same as u64;
        Ok(())
    })?;
    let kept = *kept.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(kept)
}

/// Runs a write that reads a source of rows.
fn in_one_write(
    database: &Database,
    rows: impl Iterator<Item = Result<Result<Row, BadRow>, BatchError>> + Send + 'static,
    write: impl FnOnce(&Connection, &mut Source) -> Result<(), Stopped> + Send + 'static,
) -> Result<(), BatchError> {
    let failed = Arc::new(Mutex::new(None));
    let of_write = Arc::clone(&failed);
    let mut rows: Box<Source> = Box::new(rows);
    let done = database
        .write(move |file| {
            write(file, &mut *rows).map_err(|error| match error {
                Stopped::Source(error) => {
                    *of_write.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    rusqlite::Error::ExecuteReturnedResults
                }
                Stopped::Store(error) => error,
            })
        })
        .wait();
    match failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(error) => Err(error),
        None => Ok(done?),
    }
}

/// The reason for which an import ended early.
enum Stopped {
    Source(BatchError),
    Store(rusqlite::Error),
}

impl From<rusqlite::Error> for Stopped {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error)
    }
}

/// Stores rows, whose keys are their numbers from `first` on.
fn all(file: &Connection, spec: &Spec, asked: &Asked, first: u64, rows: &mut Source) -> Result<(), Stopped> {
    if spec.dedupe {
        file.execute_batch(
            "CREATE TEMP TABLE seen (digest BLOB PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID",
        )?;
    }
    let mut count = 0;
    for row in rows {
        match row.map_err(Stopped::Source)? {
            Ok(row) => add(file, asked, (count, first + count), row, spec.dedupe)?,
            Err(bad) => reject(file, asked, (count, first + count), bad)?,
        }
        count += 1;
    }
    if spec.dedupe {
        file.execute_batch("DROP TABLE seen")?;
    }
    file.execute("UPDATE totals SET rows = ?1", [int(count)])?;
    tables::count_parts(file, spec.part_rows.max(1))?;
    Ok(())
}

/// Returns the reason for which a row is invalid, independent of other rows.
fn flaw(row: &Row) -> Option<String> {
    if !matches!(row.id, Value::String(_) | Value::Number(_)) {
        return Some("the `id` is neither a string nor a number: give each row an id of its own".to_owned());
    }
    if row.input.trim().is_empty() {
        return Some("the input is empty: there is nothing to extract from".to_owned());
    }
    let mib = row.input.len() >> 20;
    (row.input.len() > MAX_INPUT).then(|| {
        format!("the input has {mib} MiB, and a row has at most {} MiB: split the text", MAX_INPUT >> 20)
    })
}

fn add(
    file: &Connection,
    asked: &Asked,
    (number, key): (u64, u64),
    row: Row,
    dedupe: bool,
) -> Result<(), Stopped> {
    if let Some(message) = flaw(&row) {
        return reject(
            file,
            asked,
            (number, key),
            BadRow { id: row.id, message: format!("row {}: {message}", number + 1) },
        );
    }
    let id = row.id.to_string();
    let digest = Sha256::digest(&row.input);
    let digest = digest.as_slice();
    let added = file
        .prepare_cached(
            "INSERT INTO rows (number, id, state, key, digest) VALUES (?1, ?2, 0, ?3, ?4) ON CONFLICT DO NOTHING",
        )?
        .execute(params![int(number), id, int(key), digest])?;
    if added == 0 {
        let first: i64 = file
            .prepare_cached("SELECT number FROM rows WHERE id = ?1 AND bad = 0")?
            .query_row([&id], |row| row.get(0))?;
        let message = format!(
            "row {}: the id {id} is that of row {} already: give each row an id of its own",
            number + 1,
            first + 1
        );
        return reject(file, asked, (number, key), BadRow { id: row.id, message });
    }
    let columns = Some(row.columns).filter(|columns| !columns.is_empty());
    file.prepare_cached("INSERT INTO inputs VALUES (?1, ?2, ?3)")?.execute(params![
        int(number),
        row.input,
        columns
    ])?;
    if dedupe {
        let leader: Option<i64> = file
            .prepare_cached("SELECT number FROM seen WHERE digest = ?1")?
            .query_row([digest], |row| row.get(0))
            .optional()?;
        match leader {
            Some(leader) => {
                file.prepare_cached("UPDATE rows SET leader = ?2 WHERE number = ?1")?
                    .execute(params![int(number), leader])?;
            }
            None => {
                file.prepare_cached("INSERT INTO seen VALUES (?1, ?2)")?
                    .execute(params![digest, int(number)])?;
            }
        }
    }
    Ok(())
}

/// Stores a row that cannot be asked about, with its result.
fn reject(file: &Connection, asked: &Asked, (number, key): (u64, u64), bad: BadRow) -> Result<(), Stopped> {
    let end = RowEnd::new(Vec::new(), Err(Error::new(ErrorKind::Config, bad.message)));
    file.prepare_cached("INSERT INTO rows (number, id, state, bad, key) VALUES (?1, ?2, 2, 1, ?3)")?
        .execute(params![int(number), bad.id.to_string(), int(key)])?;
    let (id, _) = asked.end(file, number, &end, &end.line(), Time(0))?;
    file.prepare_cached("UPDATE rows SET answer = ?2 WHERE number = ?1")?
        .execute(params![int(number), id])?;
    file.prepare_cached("UPDATE totals SET rejected = rejected + 1")?.execute([])?;
    tables::add_reason(file, REASON, 1)?;
    Ok(())
}

/// Compares rows with those of a batch, one by one.
pub(super) fn check(
    view: &View,
    rows: impl Iterator<Item = Result<Result<Row, BadRow>, BatchError>>,
) -> Result<(), BatchError> {
    let other = |difference: String| BatchError::OtherBatch { path: view.folder.clone(), difference };
    view.database.read(|file| {
        let mut select =
            file.prepare("SELECT id, bad, input FROM rows LEFT JOIN inputs USING (number) ORDER BY number")?;
        let mut stored = select.query([])?;
        let mut count = 0_u64;
        for row in rows {
            count += 1;
            let row = match row {
                Ok(row) => row,
                Err(error) => return Ok(Err(error)),
            };
            let Some(known) = stored.next()? else {
                let difference = format!("it has {} rows, and {} has more", count - 1, view.spec.source);
                return Ok(Err(other(difference)));
            };
            let (id, bad): (String, bool) = (known.get(0)?, known.get(1)?);
            let input = row.as_ref().map_or_else(|bad| &bad.id, |row| &row.id).to_string();
            let same_text =
                bad || matches!(&row, Ok(row) if known.get_ref(2)?.as_str_or_null()? == Some(&row.input));
            if id != input {
                return Ok(Err(other(format!("row {count} had the id {id} and has the id {input} now"))));
            }
            if !same_text {
                return Ok(Err(other(format!("the input of row {count} (id {id}) has changed"))));
            }
        }
        if stored.next()?.is_some() {
            return Ok(Err(other(format!("it has more rows than the {count} of the input"))));
        }
        Ok(Ok(()))
    })?
}
