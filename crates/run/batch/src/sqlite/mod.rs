//! The store on SQLite: a folder with one database, and the files of results.

mod answers;
mod import;
mod lock;
mod older;
mod parts;
mod stored;
mod tables;
mod view;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use formwork_core::{Clock as _, Context, Contract, Cost};
use formwork_extract::{CancellationToken, TokioClock};
use formwork_ledger::Database;
use rusqlite::{Connection, params};
use serde_json::Value;

pub use self::answers::{Answers, Entry};
use self::lock::Lock;
pub use self::stored::Judged;
use self::tables::{Asked, Finished, int, nat, numbers};
pub(crate) use self::view::Found;
use self::view::{FORMAT, LEDGER, STORE};
pub use self::view::{MaxFailures, Spec, View};
use crate::question::Question;
use crate::{BadRow, BatchError, Control, OpenRow, Progress, Row, RowEnd, RowState, Stop, Store};

/// The maximum number of bytes of inputs that [`Store::open_rows`] returns, beside one row.
const MAX_READ: usize = 32 << 20;

/// The interval at which the flag of `pause` and `cancel` is read.
const LOOK: Duration = Duration::from_millis(500);

/// A batch in a folder that this process works on.
///
/// ```
/// use formwork_batch::{Batch, Row, Spec};
/// use serde_json::json;
///
/// let folder = tempfile::tempdir()?;
/// let rows = ["Maria is 34.", "Jon is 41."].into_iter().enumerate();
/// let rows: Vec<_> = rows.map(|(nth, text)| Ok(Row::new(nth, text))).collect();
/// let batch = Batch::create(folder.path(), &Spec::new(json!({"type": "object"}), "letters"), rows)?;
/// assert_eq!(batch.view().progress()?.open(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Batch {
    view: View,
    parts: parts::Writer,
    accepted: AtomicU64,
    rejected: AtomicU64,
    rows: u64,
    session: Mutex<Session>,
    _lock: Lock,
}

/// The settings and caches of one process.
#[derive(Debug, Default)]
struct Session {
    asked: Option<Arc<Asked>>,
    /// The only rows that are handed out.
    only: Option<BTreeSet<u64>>,
    max_failures: Option<MaxFailures>,
    control: Option<(Instant, Control)>,
    /// Stops the batch when it is cancelled.
    drain: Option<CancellationToken>,
}

impl Batch {
    /// Creates the batch of a new or empty folder. All rows are stored, or none.
    ///
    /// Rows that cannot be asked about, repeat the id of another row, or are longer than [`MAX_INPUT`](crate::MAX_INPUT) are
    /// rejected without a call.
    ///
    /// # Errors
    /// [`BatchError::NotABatch`] for a folder with other files, [`BatchError::OtherBatch`] for one with a batch,
    /// [`BatchError::Locked`], [`BatchError::Store`].
    pub fn create<I>(folder: impl AsRef<Path>, spec: &Spec, rows: I) -> Result<Self, BatchError>
    where
        I: IntoIterator<Item = Result<Row, BadRow>, IntoIter: Send + 'static>,
    {
        Self::create_fallible(folder, spec, rows.into_iter().map(Ok))
    }

    /// Creates a batch from a source of rows that may fail. After a failure nothing is stored.
    ///
    /// # Errors
    /// As [`create`](Self::create), and the error of the source.
    pub fn create_fallible(
        folder: impl AsRef<Path>,
        spec: &Spec,
        rows: impl Iterator<Item = Result<Result<Row, BadRow>, BatchError>> + Send + 'static,
    ) -> Result<Self, BatchError> {
        let folder = folder.as_ref();
        let wrong = |error: std::io::Error| BatchError::file(folder, &error);
        fs::create_dir_all(folder).map_err(wrong)?;
        let own = |name: &str| name.starts_with(LEDGER) || name.starts_with(STORE) || name == lock::NAME;
        for entry in fs::read_dir(folder).map_err(wrong)? {
            let entry = entry.map_err(wrong)?;
            if !own(&entry.file_name().to_string_lossy()) {
                return Err(BatchError::NotABatch(folder.to_owned()));
            }
        }
        let lock = Lock::take(folder)?;
        match View::open(folder) {
            Err(BatchError::NoBatch(_)) => {}
            Err(error) => return Err(error),
            Ok(_) => {
                let difference = "it holds a batch already".to_owned();
                return Err(BatchError::OtherBatch { path: folder.to_owned(), difference });
            }
        }
        let place = match &spec.store {
            Some(store) => std::path::absolute(store).map_err(wrong)?,
            None => STORE.into(),
        };
        if let Some(above) = folder.join(&place).parent() {
            fs::create_dir_all(above).map_err(wrong)?;
        }
        let store = Value::from(place.to_string_lossy());
        let database =
            Database::open(folder.join(LEDGER), &FORMAT, "folder", |_| Ok((folder.join(place), false)))?;
        let new = move |file: &Connection| {
            older::import(file)?;
            tables::set(file, "store", &store)
        };
        database.write(new).wait()?;
        let id = database.read(|file| tables::get(file, "id"))?.unwrap_or_default();
        let question = Question::default().with_prompt_of(&spec.contract);
        let asked = Asked::new(id.as_str().unwrap_or_default().to_owned(), question, &spec.contract);
        import::import(&database, spec, asked, rows)?;
        database.close();
        Self::with_lock(View::open(folder)?, lock)
    }

    /// Opens the batch of a folder to work on it. Files of results that a process did not come to write are written.
    ///
    /// # Errors
    /// [`BatchError::Locked`] if another process works on it, and the errors of [`View::open`].
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, BatchError> {
        let folder = folder.as_ref();
        if !folder.join(LEDGER).exists() {
            return Err(BatchError::NoBatch(folder.to_owned()));
        }
        let lock = Lock::take(folder)?;
        Self::with_lock(View::open(folder)?, lock)
    }

    fn with_lock(view: View, lock: Lock) -> Result<Self, BatchError> {
        let (id, part_rows) = (view.id.clone(), view.spec.part_rows);
        view.database.write(move |file| tables::derive(file, &id, part_rows)).wait()?;
        let progress = view.progress()?;
        let parts = parts::Writer::start(view.database.clone(), view.folder.clone(), view.spec.part_rows)?;
        let batch = Self {
            accepted: AtomicU64::new(progress.accepted),
            rejected: AtomicU64::new(progress.rejected),
            rows: progress.rows,
            session: Mutex::default(),
            parts,
            view,
            _lock: lock,
        };
        for part in batch.unwritten("open = 0")? {
            batch.parts.push(part);
        }
        Ok(batch)
    }

    /// Returns the batch as other processes see it.
    pub const fn view(&self) -> &View {
        &self.view
    }

    /// Compares the rows of an input with those of the batch.
    ///
    /// # Errors
    /// [`BatchError::OtherBatch`] with the first difference, and the error of the source.
    pub fn check_rows(
        &self,
        rows: impl Iterator<Item = Result<Result<Row, BadRow>, BatchError>>,
    ) -> Result<(), BatchError> {
        import::check(&self.view, rows)
    }

    /// Sets the maximum number or share of rejected rows, after which the batch stops (default: no limit).
    pub fn stop_at(&self, failures: MaxFailures) {
        self.session().max_failures = Some(failures);
    }

    /// Stops the batch with [`Stop::Draining`] when this token is cancelled: no further row is started, and rows in progress are
    /// finished (default: never).
    pub fn drain_on(&self, token: CancellationToken) {
        self.session().drain = Some(token);
    }

    /// Hands out only these open rows in this process: the first `rows`, or a random sample of them with this seed. Returns how
    /// many there are.
    ///
    /// # Errors
    /// [`BatchError::Store`].
    pub fn limit(&self, rows: u64, sample: Option<u64>) -> Result<u64, BatchError> {
        let mut open = self.view.database.read(|file| {
            let limit = if sample.is_some() { i64::MAX } else { int(rows) };
            let mut select = file.prepare(
                "SELECT number FROM rows WHERE state = 0 AND leader IS NULL ORDER BY number LIMIT ?1",
            )?;
            numbers(&mut select, [limit])
        })?;
        if let Some(seed) = sample {
            // The order of hashes is effectively random, and the same in every process.
            open.sort_by_key(|number| mixed(seed ^ *number));
            open.truncate(usize::try_from(rows).unwrap_or(usize::MAX));
        }
        let count = open.len() as u64;
        self.session().only = Some(open.into_iter().collect());
        Ok(count)
    }

    /// Writes the files of results that are not written yet, those with open rows included, and waits for all of them.
    ///
    /// # Errors
    /// The first error of a file since the batch was opened. Opening the batch again writes it.
    pub fn close(&self) -> Result<(), BatchError> {
        for part in self.unwritten("open > 0")? {
            self.parts.push(part);
        }
        self.parts.close()
    }

    /// Returns the parts with results that are not in their files.
    fn unwritten(&self, open: &str) -> Result<Vec<u64>, BatchError> {
        let part_rows = int(self.view.spec.part_rows);
        Ok(self.view.database.read(|file| {
            let mut select = file.prepare(&format!(
                "SELECT part FROM parts WHERE written = 0 AND {open} AND EXISTS (SELECT 1 FROM rows
                 WHERE number >= part * ?1 AND number < (part + 1) * ?1 AND state > 0)"
            ))?;
            numbers(&mut select, [part_rows])
        })?)
    }

    /// Returns up to `max` open rows: those of these numbers, or those from a number on.
    fn read_open(
        &self,
        from: u64,
        only: Option<BTreeSet<u64>>,
        max: usize,
    ) -> Result<Vec<OpenRow>, BatchError> {
        const SELECT: &str =
            "SELECT number, id, input, (SELECT answer.state FROM answer WHERE batch = ?3 AND row = key AND answer.state IS NOT NULL),
                 (SELECT handle FROM answer WHERE batch = ?3 AND row = key AND answer.era = rows.era AND ended IS NULL AND verdict IS NULL)
             FROM rows JOIN inputs USING (number) WHERE rows.state = 0 AND leader IS NULL";
        Ok(self.view.database.read(|file| {
            let (mut found, mut bytes) = (Vec::new(), 0);
            let mut add = |row: &rusqlite::Row<'_>| -> rusqlite::Result<bool> {
                let (id, input, state): (String, String, Option<String>) =
                    (row.get(1)?, row.get(2)?, row.get(3)?);
                bytes += input.len();
                let id = serde_json::from_str(&id).unwrap_or_default();
                // A state that cannot be read was written by another version, so the row starts over.
                let state = state.and_then(|state| serde_json::from_str(&state).ok());
                found.push(OpenRow {
                    handle: row.get(4)?,
                    ..OpenRow::new(nat(row.get(0)?), id, input, state)
                });
                Ok(bytes < MAX_READ)
            };
            if let Some(only) = only {
                let mut select = file.prepare_cached(&format!("{SELECT} AND number = ?1 AND ?2 > 0"))?;
                let mut count = 0;
                for number in only {
                    let mut rows = select.query(params![int(number), 1, self.view.id])?;
                    let Some(row) = rows.next()? else { continue };
                    count += 1;
                    if !add(row)? || count == max {
                        break;
                    }
                }
            } else {
                let mut select =
                    file.prepare_cached(&format!("{SELECT} AND number >= ?1 ORDER BY number LIMIT ?2"))?;
                let mut rows = select.query(params![int(from), int(max as u64), self.view.id])?;
                while let Some(row) = rows.next()? {
                    if !add(row)? {
                        break;
                    }
                }
            }
            Ok(found)
        })?)
    }

    /// Returns what is asked: the question of [`ask`](Self::ask), else one that the contract alone gives.
    fn asked(&self) -> Arc<Asked> {
        let View { id, spec, .. } = &self.view;
        let of_contract = || {
            let question = Question::default().with_prompt_of(&spec.contract);
            Arc::new(Asked::new(id.clone(), question, &spec.contract))
        };
        Arc::clone(self.session().asked.get_or_insert_with(of_contract))
    }

    /// Counts rows with a new result, and writes the files that are whole now.
    fn count(&self, is_accepted: bool, finished: Finished) {
        let count = if is_accepted { &self.accepted } else { &self.rejected };
        count.fetch_add(finished.rows, Ordering::Relaxed);
        finished.whole.into_iter().for_each(|part| self.parts.push(part));
    }

    fn set_asked(&self, asked: Asked) {
        self.session().asked = Some(Arc::new(asked));
    }

    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a number that looks like chance and depends on this one alone (SplitMix64).
const fn mixed(number: u64) -> u64 {
    let z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[async_trait]
impl Store for Batch {
    async fn open_rows(&self, after: Option<u64>, max: usize) -> Result<Vec<OpenRow>, BatchError> {
        let from = after.map_or(0, |after| after + 1);
        let only = self.session().only.as_ref().map(|only| only.range(from..).copied().collect());
        self.read_open(from, only, max)
    }

    async fn rows_among(&self, numbers: &[u64]) -> Result<Vec<OpenRow>, BatchError> {
        self.read_open(0, Some(numbers.iter().copied().collect()), usize::MAX)
    }

    async fn checkpoint(&self, row: u64, state: RowState) -> Result<(), BatchError> {
        let text = serde_json::to_string(&state)
            .map_err(|error| BatchError::Engine(format!("the state of a row cannot be written: {error}")))?;
        let asked = self.asked();
        Ok(self.view.database.write(move |file| asked.checkpoint(file, row, &state, &text)).await?)
    }

    async fn reuse(&self, row: &OpenRow, contract: &Contract) -> Result<bool, BatchError> {
        let (asked, row, context) =
            (self.asked(), row.number, Context { source: &row.input, ..Context::EMPTY });
        let satisfies = |value: &Value| contract.judge(value, &context).is_accepted();
        let Some(id) = self.view.database.read(|file| asked.stored(file, row, satisfies))? else {
            return Ok(false);
        };
        let part_rows = self.view.spec.part_rows;
        let take = move |file: &Connection| {
            asked.drop_call(file, row, true)?;
            asked.take(file, row, (id, 1), None, part_rows)
        };
        let finished = self.view.database.write(take).await?;
        self.count(true, finished);
        Ok(true)
    }

    async fn intend(
        &self,
        row: u64,
        target: &str,
        reserve: Cost,
        handle: Option<&str>,
    ) -> Result<(), BatchError> {
        let (asked, target, now) = (self.asked(), target.to_owned(), TokioClock::new().now());
        let handle = handle.map(str::to_owned);
        let intend = move |file: &Connection| {
            asked.intend(file, row, &target, (now, reserve.micro_usd, handle.as_deref()))
        };
        Ok(self.view.database.write(intend).await?)
    }

    async fn drop_call(&self, row: u64, may_be_made: bool) -> Result<(), BatchError> {
        let asked = self.asked();
        Ok(self.view.database.write(move |file| asked.drop_call(file, row, may_be_made)).await?)
    }

    async fn rows_of(&self, handle: &str) -> Result<Vec<u64>, BatchError> {
        Ok(self.view.database.read(|file| {
            let mut select = file.prepare_cached(
                "SELECT number FROM answer JOIN rows ON row = key AND answer.era = rows.era
                 WHERE batch = ?1 AND handle = ?2 AND ended IS NULL AND verdict IS NULL AND rows.state = 0 ORDER BY number",
            )?;
            numbers(&mut select, params![self.view.id, handle])
        })?)
    }

    async fn finish(&self, row: u64, end: RowEnd) -> Result<(), BatchError> {
        let (is_accepted, line) = (end.is_accepted(), end.line());
        let (asked, part_rows, now) = (self.asked(), self.view.spec.part_rows, TokioClock::new().now());
        let finish = move |file: &Connection| asked.finish(file, row, &end, &line, now, part_rows);
        let finished = self.view.database.write(finish).await?;
        self.count(is_accepted, finished);
        Ok(())
    }

    async fn control(&self) -> Result<Control, BatchError> {
        let mut session = self.session();
        if session.drain.as_ref().is_some_and(CancellationToken::is_cancelled) {
            return Ok(Control::Stop(Stop::Draining));
        }
        if let Some(max) = session.max_failures {
            let progress = Progress {
                rows: self.rows,
                accepted: self.accepted.load(Ordering::Relaxed),
                rejected: self.rejected.load(Ordering::Relaxed),
                ..Progress::default()
            };
            if max.is_exceeded(&progress) {
                return Ok(Control::Stop(Stop::TooManyFailures));
            }
        }
        match session.control {
            Some((read, control)) if read.elapsed() < LOOK => Ok(control),
            _ => {
                let control = self.view.control()?;
                session.control = Some((Instant::now(), control));
                Ok(control)
            }
        }
    }

    async fn progress(&self) -> Result<Progress, BatchError> {
        self.view.progress()
    }

    async fn note(&self, key: &str) -> Result<Option<Value>, BatchError> {
        self.view.note(key)
    }

    async fn set_note(&self, key: &str, value: Value) -> Result<(), BatchError> {
        let key = format!("note {key}");
        Ok(self.view.database.write(move |file| tables::set(file, &key, &value)).await?)
    }
}
