//! The durable record of the files of a batch.

use std::collections::BTreeMap;
use std::sync::Arc;

use formwork_core::Time;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{BatchError, Store, View};

/// The key of the index.
const INDEX: &str = "provider-batch";

/// The beginning of the keys of files.
pub(super) const KEY: &str = "formwork-";

/// A file of requests, from its plan to its results.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct File {
    /// The key by which the provider finds the file. It is the handle of the calls in the file.
    pub(super) key: String,
    /// The name of the target.
    pub(super) target: String,
    /// The time of the plan.
    pub(super) planned: Time,
    pub(super) state: FileState,
    /// The number of requests.
    pub(super) requests: usize,
}

/// The state of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FileState {
    /// The provider does not have it.
    Planned,
    /// A request to submit it was sent or is about to be; the provider may have it.
    Uncertain,
    /// The provider has it under this id.
    Submitted { id: String },
}

/// The numbers of the files that are not done.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Index {
    next: u64,
    open: Vec<u64>,
}

/// Returns the number of files that providers may have accepted and whose results were not read yet. Another engine would request
/// their rows again, at the full price.
///
/// # Errors
/// [`BatchError::Store`] if the folder cannot be read.
///
/// ```
/// use formwork_batch::{Batch, Row, Spec, open_files};
/// use serde_json::json;
///
/// let folder = tempfile::tempdir()?;
/// let batch = Batch::create(folder.path(), &Spec::new(json!({}), "letters"), [Ok(Row::new(1, "Maria is 34."))])?;
/// assert_eq!(open_files(batch.view())?, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn open_files(view: &View) -> Result<usize, BatchError> {
    let index = view.note(INDEX)?;
    let open = index.as_ref().and_then(|index| index.get("open")?.as_array().map(Vec::len));
    Ok(open.unwrap_or_default())
}

/// The files of a batch that are not done.
pub(super) struct Files {
    store: Arc<dyn Store>,
    index: Index,
    open: BTreeMap<u64, File>,
}

fn place(number: u64) -> String {
    format!("{INDEX} {number}")
}

async fn read<T: DeserializeOwned>(store: &dyn Store, key: &str) -> Result<Option<T>, BatchError> {
    let Some(value) = store.note(key).await? else { return Ok(None) };
    let read = serde_json::from_value(value);
    read.map(Some).map_err(|error| {
        BatchError::Engine(format!("the record of the files at the provider cannot be read ({key}): {error}"))
    })
}

impl Files {
    /// Reads the files that are not done.
    pub(super) async fn read(store: Arc<dyn Store>) -> Result<Self, BatchError> {
        let index: Index = read(store.as_ref(), INDEX).await?.unwrap_or_default();
        let mut open = BTreeMap::new();
        for number in &index.open {
            if let Some(file) = read(store.as_ref(), &place(*number)).await? {
                open.insert(*number, file);
            }
        }
        Ok(Self { store, index, open })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn numbers(&self) -> Vec<u64> {
        self.open.keys().copied().collect()
    }

    pub(super) fn get(&self, number: u64) -> Option<&File> {
        self.open.get(&number)
    }

    pub(super) fn files(&self) -> impl Iterator<Item = &File> {
        self.open.values()
    }

    /// Adds a file, whose rows have calls with its key as their handle; returns its number.
    pub(super) async fn add(&mut self, file: File) -> Result<u64, BatchError> {
        let number = self.index.next;
        self.write(&place(number), &file).await?;
        self.index.next += 1;
        self.index.open.push(number);
        self.open.insert(number, file);
        // The file counts from this write on; after an earlier crash its rows belong to no file.
        self.write(INDEX, &self.index).await?;
        Ok(number)
    }

    /// Stores the state of a file.
    pub(super) async fn set(&mut self, number: u64, state: FileState) -> Result<(), BatchError> {
        let Some(file) = self.open.get_mut(&number) else { return Ok(()) };
        file.state = state;
        self.write(&place(number), &self.open[&number]).await
    }

    /// Removes a file that is done.
    pub(super) async fn remove(&mut self, number: u64) -> Result<(), BatchError> {
        self.open.remove(&number);
        self.index.open.retain(|open| *open != number);
        self.write(INDEX, &self.index).await?;
        self.store.set_note(&place(number), Value::Null).await
    }

    async fn write(&self, key: &str, value: &(impl Serialize + Sync)) -> Result<(), BatchError> {
        let value = serde_json::to_value(value).map_err(|error| BatchError::Engine(error.to_string()))?;
        self.store.set_note(key, value).await
    }
}

/// Returns the id of a row's request in a file.
pub(super) fn custom_id(key: &str, row: u64) -> String {
    format!("{key}-{row}")
}
