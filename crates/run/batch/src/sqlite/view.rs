use std::path::{Path, PathBuf};

use formwork_ledger::{Database, Format};
use serde_json::Value;

use super::lock::Lock;
use super::older;
use super::tables::{self, nat};
use crate::{BatchError, Control, Progress, Stop};

/// `fwbt`.
pub(super) const FORMAT: Format = Format {
    application: 0x6677_6274,
    steps: &[
        include_str!("0001_batch.sql"),
        include_str!("0002_earlier.sql"),
        include_str!("0003_store.sql"),
    ],
};

/// The name of the database in the folder of a batch.
pub(super) const LEDGER: &str = "ledger.db";

/// The name of the store of a batch that has its own.
pub(super) const STORE: &str = "store.db";

/// The fixed parts of a batch.
///
/// ```
/// use formwork_batch::Spec;
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]});
/// let spec = Spec { dedupe: true, ..Spec::new(schema, "letters.jsonl") };
/// assert_eq!(spec.part_rows, 1000);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// The contract, which must not change while the batch is processed. It is compared as a whole.
    pub contract: Value,
    /// The name of the input, for people.
    pub source: String,
    /// The number of rows of one file of results (default: 1,000).
    pub part_rows: u64,
    /// Whether rows with the same input are processed only once (default: no). Each still has its own result.
    pub dedupe: bool,
    /// The file with the answers: a ledger, which batches may share (default: `store.db` in the folder of the batch, which can be moved
    /// with it).
    pub store: Option<PathBuf>,
}

impl Spec {
    /// Creates a description with the defaults.
    pub fn new(contract: Value, source: impl Into<String>) -> Self {
        Self { contract, source: source.into(), part_rows: 1000, dedupe: false, store: None }
    }
}

/// The share or number of rejected rows at which a batch stops.
///
/// ```
/// use formwork_batch::{MaxFailures, Progress};
///
/// let mut progress = Progress::default();
/// (progress.rows, progress.accepted, progress.rejected) = (1_000, 190, 10);
/// assert!(MaxFailures::Share(0.02).is_exceeded(&progress));
/// assert!(!MaxFailures::Rows(10).is_exceeded(&progress));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MaxFailures {
    /// A number of rows.
    Rows(u64),
    /// A share of the rows with a result, from 0 to 1. Below 100 results, the share is of 100 rows, or of all rows if there are fewer.
    Share(f64),
}

impl MaxFailures {
    /// Returns whether the number of rejected rows exceeds the limit.
    pub fn is_exceeded(self, progress: &Progress) -> bool {
        let Progress { rows, rejected, .. } = *progress;
        match self {
            Self::Rows(max) => rejected > max,
            Self::Share(share) => {
                let base = progress.finished().max(rows.min(100));
                rejected as f64 > share * base as f64
            }
        }
    }
}

/// Reads the state of a batch in a folder, also while another process works on it.
///
/// The folder has `ledger.db`, the rows; `store.db`, the answers, unless they are elsewhere ([`Spec::store`]); `part-*.jsonl`, the values; `rejected-*.jsonl`, the rejected rows; and `lock`.
///
/// ```
/// use formwork_batch::{Batch, Row, Spec, View};
/// use serde_json::json;
///
/// let folder = tempfile::tempdir()?;
/// let rows = [Ok(Row::new("maria", "Maria is 34.")), Ok(Row::new("jon", "Jon is 41."))];
/// drop(Batch::create(folder.path(), &Spec::new(json!({"type": "object"}), "letters.jsonl"), rows)?);
///
/// let view = View::open(folder.path())?;
/// assert_eq!(view.spec().source, "letters.jsonl");
/// assert_eq!((view.progress()?.open(), view.process()), (2, None));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct View {
    pub(super) folder: PathBuf,
    pub(super) database: Database,
    pub(super) spec: Spec,
    /// The id of the batch in the store.
    pub(super) id: String,
}

impl View {
    /// Opens the batch of a folder for reading. A folder that cannot be written to is read as it is.
    ///
    /// # Errors
    /// [`BatchError::NoBatch`] if there is none, [`BatchError::Store`] if the file has another format.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, BatchError> {
        let folder = folder.as_ref().to_owned();
        let path = folder.join(LEDGER);
        if !path.exists() {
            return Err(BatchError::NoBatch(folder));
        }
        let store = |file: &rusqlite::Connection| {
            // A folder of an earlier version has its answers still in the file.
            let is_older = tables::get(file, "id")?.is_none();
            let store = tables::get(file, "store")?;
            let store = store.as_ref().and_then(Value::as_str).unwrap_or(STORE);
            Ok((folder.join(store), !is_older))
        };
        let database = Database::open(&path, &FORMAT, "folder", store).or_else(|error| match error {
            formwork_ledger::Error::File { .. } => {
                Database::open_read_only(&path, &FORMAT, "folder", store).map_err(|second| match &second {
                    // The folder can be read, and the store cannot.
                    formwork_ledger::Error::File { path: place, .. }
                        if *place != path && !matches!(place.try_exists(), Ok(false)) =>
                    {
                        second
                    }
                    _ => error,
                })
            }
            error => Err(error),
        })?;
        let is_older = database.read(|file| Ok(tables::get(file, "id")?.is_none()))?;
        if is_older {
            database.write(older::import).wait()?;
        }
        let spec = database.read(|file| {
            let value = |key| tables::get(file, key).map(Option::unwrap_or_default);
            let Some(contract) = tables::get(file, "contract")? else { return Ok(None) };
            let spec = Spec {
                contract,
                source: value("source")?.as_str().unwrap_or_default().to_owned(),
                part_rows: value("part_rows")?.as_u64().unwrap_or(1000).max(1),
                dedupe: value("dedupe")?.as_bool().unwrap_or_default(),
                store: value("store")?.as_str().map(PathBuf::from),
            };
            Ok(Some((spec, value("id")?.as_str().unwrap_or_default().to_owned())))
        })?;
        // A process that died while it read the input leaves a file without a batch.
        let (spec, id) = spec.ok_or_else(|| BatchError::NoBatch(folder.clone()))?;
        Ok(Self { folder, database, spec, id })
    }

    /// Returns the file with the answers.
    pub fn store(&self) -> PathBuf {
        self.folder.join(self.spec.store.as_deref().unwrap_or(Path::new(STORE)))
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the fixed parts of the batch.
    pub const fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Returns the id of the process that works on the batch, if there is one; 0 if its id is not known.
    pub fn process(&self) -> Option<u32> {
        Lock::holder(&self.folder)
    }

    /// Returns the progress of the batch.
    ///
    /// # Errors
    /// [`BatchError::Store`].
    pub fn progress(&self) -> Result<Progress, BatchError> {
        let has_process = || self.process().is_some();
        Ok(self.database.read(|file| tables::progress(file, &self.id, has_process))?)
    }

    /// Returns the value that was stored under this key; `None` if there is none.
    ///
    /// # Errors
    /// [`BatchError::Store`].
    pub fn note(&self, key: &str) -> Result<Option<Value>, BatchError> {
        Ok(self.database.read(|file| tables::get(file, &format!("note {key}")))?)
    }

    /// Stores a value under this key; null removes it. Returns after the write is durable.
    ///
    /// # Errors
    /// [`BatchError::Store`].
    pub fn set_note(&self, key: &str, value: Value) -> Result<(), BatchError> {
        let key = format!("note {key}");
        Ok(self.database.write(move |file| tables::set(file, &key, &value)).wait()?)
    }

    /// Returns whether the user paused or cancelled the batch.
    ///
    /// # Errors
    /// [`BatchError::Store`].
    pub fn control(&self) -> Result<Control, BatchError> {
        Ok(match self.database.read(|file| tables::get(file, "control"))?.as_ref().and_then(Value::as_str) {
            Some("pause") => Control::Stop(Stop::Paused),
            Some("cancel") => Control::Stop(Stop::Cancelled),
            _ => Control::Run,
        })
    }

    /// Pauses, cancels or continues the batch. A process that works on it notices this within a second.
    ///
    /// # Errors
    /// [`BatchError::Store`].
    pub fn set_control(&self, control: Control) -> Result<(), BatchError> {
        let value = match control {
            Control::Stop(Stop::Paused) => Value::from("pause"),
            Control::Stop(Stop::Cancelled) => Value::from("cancel"),
            _ => Value::Null,
        };
        Ok(self.database.write(move |file| tables::set(file, "control", &value)).wait()?)
    }

    /// Returns the costs of the rows with a result, in millionths of a US dollar and in tokens, and the lengths of their inputs in
    /// bytes; rows without a call are omitted. The cost is `None` if a price is unknown.
    ///
    /// # Errors
    /// [`BatchError::Store`].
    pub fn row_costs(&self) -> Result<Vec<(Option<u64>, u64, u64)>, BatchError> {
        Ok(self.database.read(|file| {
            let mut select = file.prepare(
                "SELECT CASE WHEN count(*) = count(micro_usd) THEN sum(micro_usd) END, sum(input_tokens + output_tokens),
                     octet_length(inputs.input)
                 FROM rows JOIN answer ON answer.batch = ?1 AND row = key JOIN inputs USING (number)
                 WHERE rows.state > 0 AND call IS NOT NULL GROUP BY number",
            )?;
            let rows = select.query_map([&self.id], |row| {
                Ok((row.get::<_, Option<i64>>(0)?.map(nat), nat(row.get(1)?), nat(row.get(2)?)))
            })?;
            rows.collect()
        })?)
    }

    /// Returns the length of the inputs of the open rows that need a call, in bytes.
    ///
    /// # Errors
    /// [`BatchError::Store`].
    pub fn open_bytes(&self) -> Result<u64, BatchError> {
        let sql = "SELECT coalesce(sum(octet_length(input)), 0) FROM rows JOIN inputs USING (number)
                   WHERE state = 0 AND bad = 0 AND leader IS NULL";
        Ok(self.database.read(|file| file.query_row(sql, [], |row| row.get(0).map(nat)))?)
    }

    /// Returns the number of rows that need a call: valid rows that do not share the result of another row.
    ///
    /// # Errors
    /// [`BatchError::Store`].
    pub fn askable(&self) -> Result<u64, BatchError> {
        let sql = "SELECT count(*) FROM rows WHERE bad = 0 AND leader IS NULL";
        Ok(self.database.read(|file| file.query_row(sql, [], |row| row.get(0).map(nat)))?)
    }

    /// Gives each row to a function, in the order of the input.
    pub(crate) fn each_row(
        &self,
        mut each: impl FnMut(Found<'_>) -> Result<(), BatchError>,
    ) -> Result<(), BatchError> {
        self.database.read(|file| {
            let mut select = file.prepare(
                "SELECT rows.number, rows.id, rows.state, inputs.columns, answer.line, answer.model,
                     coalesce(answer.version, nullif(answer.prompt, '')),
                     strftime('%Y-%m-%dT%H:%M:%SZ', nullif(answer.ended, 0) / 1000, 'unixepoch'),
                     coalesce(answer.batch = ?1 AND answer.row = rows.key, 0) FROM rows
                 LEFT JOIN inputs USING (number) LEFT JOIN answer ON answer.id = rows.answer AND rows.state > 0
                 ORDER BY rows.number",
            )?;
            let mut rows = select.query([&self.id])?;
            while let Some(row) = rows.next()? {
                let found = Found {
                    number: nat(row.get(0)?),
                    id: row.get_ref(1)?.as_str()?,
                    is_accepted: match row.get(2)? {
                        0 => None,
                        state => Some(state == 1),
                    },
                    columns: row.get_ref(3)?.as_str_or_null()?,
                    line: row.get_ref(4)?.as_str_or_null()?,
                    model: row.get_ref(5)?.as_str_or_null()?,
                    prompt: row.get_ref(6)?.as_str_or_null()?,
                    at: row.get_ref(7)?.as_str_or_null()?,
                    is_own: row.get(8)?,
                };
                if let Err(error) = each(found) {
                    return Ok(Err(error));
                }
            }
            Ok(Ok(()))
        })?
    }

    /// Returns an error if results were pruned.
    pub(crate) fn none_pruned(&self, pruned: u64) -> Result<(), BatchError> {
        if pruned == 0 {
            return Ok(());
        }
        let store = self.store();
        Err(BatchError::Engine(format!(
            "{pruned} results are not in {} any more: `formwork store prune` deleted them",
            store.display()
        )))
    }
}

/// A row of a batch, for exports.
pub(crate) struct Found<'a> {
    /// The position in the input, from 0.
    pub(crate) number: u64,
    /// The id as JSON.
    pub(crate) id: &'a str,
    /// The further columns of the row, as a JSON object.
    pub(crate) columns: Option<&'a str>,
    /// Whether the row has a value; `None` if it has no result.
    pub(crate) is_accepted: Option<bool>,
    /// The result without its id: [`ResultLine`](crate::ResultLine) or [`RejectedLine`](crate::RejectedLine) as JSON.
    pub(crate) line: Option<&'a str>,
    /// The configured model of the target that answered, if it is known.
    pub(crate) model: Option<&'a str>,
    /// The version of the prompt that the contract names, else the digest of the instructions and examples.
    pub(crate) prompt: Option<&'a str>,
    /// The time of the answer (RFC 3339, UTC).
    pub(crate) at: Option<&'a str>,
    /// Whether the result is of calls of this row: not from the store, nor from a row with the same input.
    pub(crate) is_own: bool,
}
