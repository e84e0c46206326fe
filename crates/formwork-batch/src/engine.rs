//! The interface between the durable state of a batch and the machinery that asks models.

use std::sync::Arc;

use async_trait::async_trait;
use formwork_extract::CancellationToken;
use serde_json::Value;

use crate::{BatchError, OpenRow, Progress, RowEnd, RowState};

/// The durable state of one batch: which rows are open, how far each one is, and what came of it.
///
/// Every method that writes returns when the write is on the disk. [`Batch`](crate::Batch) is the store on SQLite.
#[async_trait]
pub trait Store: Send + Sync {
    /// Returns up to `max` rows without a result, in the order of their numbers, that come after the row `after`; an empty list
    /// if there are no more. It returns fewer rows, or none, where the caller limited the batch to some rows.
    async fn open_rows(&self, after: Option<u64>, max: usize) -> Result<Vec<OpenRow>, BatchError>;

    /// Returns those of these rows that have no result, wherever the caller limited the batch, in the order of their numbers. It may
    /// return the first ones alone, at least one if there is one.
    async fn rows_among(&self, numbers: &[u64]) -> Result<Vec<OpenRow>, BatchError>;

    /// Stores the state of a row that goes on. The calls in it are counted once, however often they are stored.
    async fn checkpoint(&self, row: u64, state: RowState) -> Result<(), BatchError>;

    /// Stores the result of a row, which is not open any more. The first result of a row counts: a second one is left out, but
    /// its calls are counted.
    async fn finish(&self, row: u64, end: RowEnd) -> Result<(), BatchError>;

    /// Returns whether the batch goes on. An engine asks before it starts a row, and at least once a second.
    async fn control(&self) -> Result<Control, BatchError>;

    /// Returns the numbers of the batch.
    async fn progress(&self) -> Result<Progress, BatchError>;

    /// Returns a value that the engine has kept under this key; `None` if there is none.
    async fn note(&self, key: &str) -> Result<Option<Value>, BatchError>;

    /// Keeps a value of the engine under this key, for example the id of a job at a provider; null removes it.
    async fn set_note(&self, key: &str, value: Value) -> Result<(), BatchError>;
}

/// Whether a batch goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Control {
    /// It goes on.
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
}

/// The reason why an engine ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// Every row that the store gave has a result.
    Done,
    /// [`Store::control`] stopped it.
    Stopped(Stop),
    /// The caller's token was cancelled.
    Interrupted,
    /// The budget has no room for another call: the message.
    OverBudget(String),
    /// No provider answered: the message of the last error. The rows stay open.
    Unavailable(String),
    /// The configuration rules every row out: the message of the last error. The rows stay open.
    Config(String),
}

/// Takes the open rows of a batch to their results.
///
/// An engine may do this in its own process, as [`InProcess`](crate::InProcess) does, or let other machines do it. It keeps
/// these rules:
///
/// 1. It takes rows from [`Store::open_rows`] alone, and begins with their `state` if they have one: a run is continued with
///    [`Run::resumed`](formwork_core::Run::resumed) if [it is of](formwork_core::Run::is_of) the engine's plan, and
///    [restarted](RowState::restarted) otherwise.
/// 2. It stores each call before the next step of its run, with [`Store::checkpoint`] or in a journal of its own that
///    survives a crash. A call that is repeated after a crash was in flight at that moment.
/// 3. It calls [`Store::finish`] for each row once. A row that fails for a reason that is not its own (no provider answers, the
///    budget is used up) is not finished but left open, with its calls in [`RowState::history`].
/// 4. A row that fails never ends the others.
/// 5. It starts no row after [`Store::control`] returned [`Control::Stop`], and ends its open calls when the token is
///    cancelled; rows that were cut off are left open.
///
/// The rows without a result are returned again to the next engine, at whatever moment the process dies.
#[async_trait]
pub trait Engine: Send + Sync {
    /// Carries out the open rows until all of them have a result, or the batch is to stop.
    ///
    /// # Errors
    /// The error of the store. Rows that have no result stay open.
    async fn run(&self, store: Arc<dyn Store>, cancel: &CancellationToken) -> Result<Ended, BatchError>;
}
