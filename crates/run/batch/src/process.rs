//! The engine that asks models from this process.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use formwork_core::{CallRecord, Clock as _, Cost, Error, ErrorKind, Run};
use formwork_extract::{CancellationToken, Extractor, Journal, TokioClock};
use serde_json::Value;

use crate::drive::{AsksRows, Outcome, Turn, drive, settle};
use crate::pace::Coming;
use crate::row::{Accepted, RunError};
use crate::{BatchError, Ended, Engine, OpenRow, Pace, RowState, Store};

/// The engine that asks models from this process, many rows at a time.
///
/// While no provider answers it tries one row after the other with growing pauses, and ends after the
/// [patience](Self::with_patience) with [`Ended::Unavailable`]; the rows stay open. If no row was answered before, a wrong key and a
/// server name without an address end it after three rows. A row that finds no provider three times
/// while other rows are answered is rejected.
///
/// ```
/// use std::sync::Arc;
/// use formwork_batch::{Batch, Ended, Engine, InProcess, Row, Spec};
/// use formwork_extract::{CancellationToken, Extractor};
/// use formwork_testkit::Scripted;
/// use serde_json::json;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let schema = json!({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]});
/// let model = Scripted::new([r#"{"age": 34}"#, r#"{"age": "old"}"#, r#"{"age": 41}"#]);
/// let extractor = Extractor::for_document("person", schema.clone()).with_target(Arc::new(model)).build()?;
///
/// let folder = tempfile::tempdir()?;
/// let rows = ["Maria is 34.", "Jon is 41."].into_iter().enumerate();
/// let rows: Vec<_> = rows.map(|(nth, text)| Ok(Row::new(nth, text))).collect();
/// let batch = Arc::new(Batch::create(folder.path(), &Spec::new(schema, "letters"), rows)?);
/// let ended = InProcess::new(extractor, 1).run(batch.clone(), &CancellationToken::new()).await?;
/// batch.close()?;
/// assert_eq!((ended, batch.view().progress()?.calls), (Ended::Done, 3));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
#[derive(Debug, Clone)]
pub struct InProcess {
    extractor: Extractor<Value>,
    rows: usize,
    paces: Vec<Pace>,
    /// The rows that have not called a target yet.
    coming: Arc<AtomicUsize>,
    patience: Duration,
    clock: TokioClock,
}

impl InProcess {
    /// Creates an engine that works on `rows` rows concurrently (at least 1).
    pub fn new(extractor: Extractor<Value>, rows: usize) -> Self {
        Self {
            extractor,
            rows: rows.max(1),
            paces: Vec::new(),
            coming: Arc::default(),
            patience: Duration::from_secs(300),
            clock: TokioClock::new(),
        }
    }

    /// Opens as many rows as the targets take, at most the number of [`new`](Self::new) (default: that number). Each pace is the
    /// layer of one target of the extractor.
    pub fn with_paces(mut self, paces: impl IntoIterator<Item = Pace>) -> Self {
        self.paces = paces.into_iter().collect();
        self
    }

    /// Sets how long the batch waits while no provider answers (default: 5 minutes).
    pub const fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }
}

/// Stores the state of one row between its steps.
struct RowJournal {
    store: Arc<dyn Store>,
    row: u64,
    history: Vec<CallRecord>,
    deferred: u32,
    clock: TokioClock,
    failed: Arc<Mutex<Option<BatchError>>>,
}

#[async_trait]
impl Journal for RowJournal {
    async fn store(&self, run: &Run) -> Result<(), Error> {
        let state = RowState {
            history: self.history.clone(),
            run: Some(Box::new(run.clone())),
            stored: self.clock.now(),
            deferred: self.deferred,
        };
        self.store.checkpoint(self.row, state).await.map_err(|error| self.fails(error))
    }

    async fn calling(&self, target: &str, reserve: Cost) -> Result<(), Error> {
        self.store.intend(self.row, target, reserve, None).await.map_err(|error| self.fails(error))
    }
}

impl RowJournal {
    /// Keeps the error of the store, and ends the run.
    fn fails(&self, error: BatchError) -> Error {
        let message = error.to_string();
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        Error::new(ErrorKind::Cancelled, message)
    }
}

#[async_trait]
impl AsksRows for InProcess {
    fn room(&self, open: usize) -> usize {
        let free = self.rows.saturating_sub(open);
        if self.paces.is_empty() {
            return free;
        }
        let room = self.in_use().map(Pace::room).fold(0, usize::saturating_add);
        room.saturating_sub(self.coming.load(Ordering::Relaxed)).min(free)
    }

    fn wait(&self) -> Duration {
        self.in_use().map(Pace::wait).min().unwrap_or_default()
    }

    async fn row(&self, store: &Arc<dyn Store>, row: OpenRow, turn: Turn) -> Result<Outcome, BatchError> {
        Coming::scope(&self.coming, self.process(store, row, turn)).await
    }
}

impl InProcess {
    /// Returns the paces that count: the first target's, and those of the others that were called lately.
    fn in_use(&self) -> impl Iterator<Item = &Pace> {
        let others = self.paces.iter().skip(1).filter(|pace| pace.is_in_use());
        self.paces.first().into_iter().chain(others)
    }

    async fn process(&self, store: &Arc<dyn Store>, row: OpenRow, turn: Turn) -> Result<Outcome, BatchError> {
        let (extractor, clock) = (&self.extractor, self.clock);
        if store.reuse(&row, extractor.plan().contract()).await? {
            return Ok(Outcome::Finished(false));
        }
        let OpenRow { number, input, state, .. } = row;
        let mut state = state.unwrap_or_default();
        let now = clock.now();
        let continued = state.continued(extractor, now);
        let RowState { history, deferred, .. } = state;
        let extraction = continued.unwrap_or_else(|| extractor.extraction(input));
        let failed = Arc::new(Mutex::new(None));
        let journal = RowJournal {
            store: Arc::clone(store),
            row: number,
            history: history.clone(),
            deferred,
            clock,
            failed: Arc::clone(&failed),
        };
        let result = extraction.with_cancel(turn.cut.clone()).with_journal(Arc::new(journal)).run().await;
        if let Some(error) = failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(error);
        }
        if result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Cancelled) {
            store.drop_call(number, true).await?;
        }
        let result = result.map(Accepted::from).map_err(RunError::from);
        settle(store.as_ref(), number, history, deferred, result, &turn, now).await
    }
}

#[async_trait]
impl Engine for InProcess {
    async fn run(&self, store: Arc<dyn Store>, cancel: &CancellationToken) -> Result<Ended, BatchError> {
        drive(self, &store, cancel, self.patience).await
    }
}
