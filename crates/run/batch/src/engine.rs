//! The interface between the durable state of a batch ([`Store`]) and the code that processes its rows ([`Engine`]).

use std::sync::Arc;

use async_trait::async_trait;
use formwork_core::{Contract, Cost};
use formwork_extract::CancellationToken;
use serde_json::Value;

use crate::{BatchError, OpenRow, Progress, RowEnd, RowState};

/// The durable state of one batch: its open rows with their states, and the results of the others.
///
/// Every method that writes returns after the write is durable. [`Batch`](crate::Batch) is the store on SQLite.
///
/// ```
/// use std::collections::BTreeMap;
/// use std::sync::Mutex;
///
/// use formwork_batch::{BatchError, Control, OpenRow, Progress, Row, RowEnd, RowState, Store};
/// use serde_json::Value;
///
/// /// A store for tests: its rows are lost with the process.
/// struct InMemory {
///     rows: Vec<Row>,
///     states: Mutex<BTreeMap<u64, RowState>>,
///     ends: Mutex<BTreeMap<u64, RowEnd>>,
///     notes: Mutex<BTreeMap<String, Value>>,
/// }
///
/// impl InMemory {
///     fn open(&self, number: u64) -> Option<OpenRow> {
///         let row = self.rows.get(usize::try_from(number).ok()?)?;
///         let state = self.states.lock().unwrap().get(&number).cloned();
///         let is_open = !self.ends.lock().unwrap().contains_key(&number);
///         is_open.then(|| OpenRow::new(number, row.id.clone(), row.input.clone(), state))
///     }
/// }
///
/// #[async_trait::async_trait]
/// impl Store for InMemory {
///     async fn open_rows(&self, after: Option<u64>, max: usize) -> Result<Vec<OpenRow>, BatchError> {
///         let first = after.map_or(0, |number| number + 1);
///         Ok((first..self.rows.len() as u64).filter_map(|number| self.open(number)).take(max).collect())
///     }
///     async fn rows_among(&self, numbers: &[u64]) -> Result<Vec<OpenRow>, BatchError> {
///         Ok(numbers.iter().filter_map(|number| self.open(*number)).collect())
///     }
///     async fn checkpoint(&self, row: u64, state: RowState) -> Result<(), BatchError> {
///         self.states.lock().unwrap().insert(row, state);
///         Ok(())
///     }
///     async fn finish(&self, row: u64, end: RowEnd) -> Result<(), BatchError> {
///         self.ends.lock().unwrap().entry(row).or_insert(end);
///         Ok(())
///     }
///     async fn control(&self) -> Result<Control, BatchError> {
///         Ok(Control::Run)
///     }
///     async fn progress(&self) -> Result<Progress, BatchError> {
///         let mut progress = Progress::default();
///         progress.rows = self.rows.len() as u64;
///         progress.accepted = self.ends.lock().unwrap().values().filter(|end| end.is_accepted()).count() as u64;
///         Ok(progress)
///     }
///     async fn note(&self, key: &str) -> Result<Option<Value>, BatchError> {
///         Ok(self.notes.lock().unwrap().get(key).cloned())
///     }
///     async fn set_note(&self, key: &str, value: Value) -> Result<(), BatchError> {
///         self.notes.lock().unwrap().insert(key.to_owned(), value);
///         Ok(())
///     }
/// }
/// ```
#[async_trait]
pub trait Store: Send + Sync {
    /// Returns up to `max` rows without a result, in the order of their numbers, that come after the row `after`; an empty list
    /// if there are no more. It returns fewer rows, or none, if the caller limited the number of rows.
    async fn open_rows(&self, after: Option<u64>, max: usize) -> Result<Vec<OpenRow>, BatchError>;

    /// Returns the rows with these numbers that have no result, in the order of their numbers, independent of a limit of the caller. It
    /// may return only the first of them, but at least one if there is one.
    async fn rows_among(&self, numbers: &[u64]) -> Result<Vec<OpenRow>, BatchError>;

    /// Stores the state of an open row. Each call in it is counted once, even if it is stored several times.
    async fn checkpoint(&self, row: u64, state: RowState) -> Result<(), BatchError>;

    /// Gives an open row the newest stored value for the same question about the same text that satisfies the contract (default: there
    /// is none). Returns whether the row has a result now. An engine calls this before it starts or continues the run of the row.
    async fn reuse(&self, _row: &OpenRow, _contract: &Contract) -> Result<bool, BatchError> {
        Ok(false)
    }

    /// Stores that a row is about to call a target, for at most this cost (default: does nothing). The call is open until its result is
    /// stored, and uncertain if its process ends before. A call with a handle goes on without this process: under this name a provider or
    /// another process has it. An earlier open call of the row becomes uncertain, for at most this cost if its own was not known.
    async fn intend(
        &self,
        _row: u64,
        _target: &str,
        _reserve: Cost,
        _handle: Option<&str>,
    ) -> Result<(), BatchError> {
        Ok(())
    }

    /// Stores that the open call of a row will have no result (default: does nothing). It is uncertain if it may have been made.
    async fn drop_call(&self, _row: u64, _may_be_made: bool) -> Result<(), BatchError> {
        Ok(())
    }

    /// Returns the numbers of the rows whose open call has this handle, in their order (default: an error; engines that give their calls
    /// handles need it).
    async fn rows_of(&self, _handle: &str) -> Result<Vec<u64>, BatchError> {
        Err(BatchError::Engine("this store keeps no handles of calls".to_owned()))
    }

    /// Stores the result of a row, which is then no longer open. The first result of a row counts: a second one is ignored, but its
    /// calls are counted.
    async fn finish(&self, row: u64, end: RowEnd) -> Result<(), BatchError>;

    /// Returns whether the batch may continue. An engine calls this before it starts a row, and at least once per second.
    async fn control(&self) -> Result<Control, BatchError>;

    /// Returns the progress of the batch.
    async fn progress(&self) -> Result<Progress, BatchError>;

    /// Returns the value that the engine stored under this key; `None` if there is none.
    async fn note(&self, key: &str) -> Result<Option<Value>, BatchError>;

    /// Stores a value of the engine under this key, for example the id of a job at a provider; null removes it.
    async fn set_note(&self, key: &str, value: Value) -> Result<(), BatchError>;
}

/// Whether a batch may continue.
///
/// ```
/// use formwork_batch::{Batch, Control, Row, Spec, Stop};
/// use serde_json::json;
///
/// let folder = tempfile::tempdir()?;
/// let rows = [Ok(Row::new("maria", "Maria is 34."))];
/// let batch = Batch::create(folder.path(), &Spec::new(json!({"type": "object"}), "letters"), rows)?;
/// batch.view().set_control(Control::Stop(Stop::Paused))?;
/// assert_eq!(batch.view().control()?, Control::Stop(Stop::Paused));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Control {
    /// It continues.
    Run,
    /// No further row is started; rows that were started are finished.
    Stop(Stop),
}

/// The reason why no further row is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// The user paused the batch.
    Paused,
    /// The user cancelled the batch. Open calls are ended as well.
    Cancelled,
    /// More rows were rejected than the user allows.
    TooManyFailures,
    /// The process is to end.
    Draining,
}

/// The reason why an engine ended.
///
/// ```
/// use formwork_batch::{Ended, Stop};
///
/// fn advice(ended: &Ended) -> &'static str {
///     match ended {
///         Ended::Done => "every row has a result",
///         Ended::Stopped(Stop::Paused) => "continue with `formwork batch resume`",
///         Ended::Unavailable(_) => "check the provider, then resume",
///         _ => "see the message",
///     }
/// }
///
/// assert_eq!(advice(&Ended::Stopped(Stop::Paused)), "continue with `formwork batch resume`");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// Every row that the store returned has a result.
    Done,
    /// [`Store::control`] stopped it.
    Stopped(Stop),
    /// The caller's token was cancelled.
    Interrupted,
    /// The budget does not allow another call: the message.
    OverBudget(String),
    /// No provider answered: the message of the last error. The rows stay open.
    Unavailable(String),
    /// The configuration prevents all calls: the message of the last error. The rows stay open.
    Config(String),
}

/// Processes the open rows of a batch, in its own process as [`InProcess`](crate::InProcess) does, or on other machines.
///
/// An engine has to follow these rules:
///
/// 1. It takes rows only from [`Store::open_rows`], and starts from their `state` if they have one: a run is continued with
///    [`Run::resumed`](formwork_core::Run::resumed) if it [belongs to](formwork_core::Run::is_of) the engine's plan, and
///    [restarted](RowState::restarted) otherwise.
/// 2. It stores each call before the next step of its run, with [`Store::checkpoint`] or in its own durable journal. After a
///    crash, only calls that were in flight are repeated.
/// 3. It calls [`Store::finish`] once for each row. A row that fails for an external reason (no provider answers, the budget is
///    exhausted) stays open, with its calls in [`RowState::history`].
/// 4. A failing row never ends other rows.
/// 5. It starts no row after [`Store::control`] returned [`Control::Stop`], and ends its open calls when the token is
///    cancelled; rows in progress then stay open.
///
/// The next engine receives all rows without a result again, whenever the process died.
///
/// ```
/// use std::sync::Arc;
///
/// use formwork_batch::{BatchError, Control, Ended, Engine, RowEnd, Store};
/// use formwork_extract::{CancellationToken, Extractor};
/// use serde_json::Value;
///
/// /// Processes one row after the other, and starts interrupted rows over.
/// struct OneByOne(Extractor<Value>);
///
/// #[async_trait::async_trait]
/// impl Engine for OneByOne {
///     async fn run(&self, store: Arc<dyn Store>, cancel: &CancellationToken) -> Result<Ended, BatchError> {
///         let mut last = None;
///         while let Some(row) = store.open_rows(last, 1).await?.pop() {
///             if cancel.is_cancelled() {
///                 return Ok(Ended::Interrupted);
///             }
///             if let Control::Stop(reason) = store.control().await? {
///                 return Ok(Ended::Stopped(reason));
///             }
///             let history = row.state.map(|state| state.restarted().history).unwrap_or_default();
///             let result = self.0.extract(row.input).await;
///             store.finish(row.number, RowEnd::new(history, result)).await?;
///             last = Some(row.number);
///         }
///         Ok(Ended::Done)
///     }
/// }
/// ```
#[async_trait]
pub trait Engine: Send + Sync {
    /// Processes the open rows until all of them have a result, or the batch has to stop.
    ///
    /// # Errors
    /// The error of the store. Rows without a result stay open.
    async fn run(&self, store: Arc<dyn Store>, cancel: &CancellationToken) -> Result<Ended, BatchError>;
}
