//! The engine that asks models from this process.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use formwork_core::{Attempt, Clock as _, Error, ErrorKind, Run, Time, is_answered};
use formwork_extract::{CancellationToken, Extraction, Extractor, Journal, TokioClock};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;
use tokio::time::Instant;

use crate::{BatchError, Control, Ended, Engine, OpenRow, Pace, RowEnd, RowState, Stop, Store};

/// How many rows are read from the store at a time.
pub(crate) const READ: usize = 256;

/// How often the control of the store is read.
const LOOK: Duration = Duration::from_millis(250);

/// How often a row may end for a reason that is not its own before it is rejected, if other rows are answered meanwhile.
pub(crate) const MAX_DEFERRED: u32 = 3;

/// How many rows in a row may find no provider before the batch ends, if none was ever answered.
const MAX_UNANSWERED: u32 = 3;

/// The longest pause between two rows while no provider answers.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// The engine that asks models from this process, many rows at a time.
///
/// While no provider answers it tries one row after the other with growing pauses, and ends after the
/// [patience](Self::with_patience) with [`Ended::Unavailable`]; the rows stay open. A row that finds no provider three times
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
#[derive(Debug, Clone)]
pub struct InProcess {
    extractor: Extractor<Value>,
    rows: usize,
    paces: Vec<Pace>,
    patience: Duration,
}

impl InProcess {
    /// Creates an engine that works on `rows` rows concurrently (at least 1).
    pub fn new(extractor: Extractor<Value>, rows: usize) -> Self {
        Self { extractor, rows: rows.max(1), paces: Vec::new(), patience: Duration::from_secs(300) }
    }

    /// Opens as many rows as the targets take, at most the number of [`new`](Self::new) (default: that number). Each pace is the
    /// layer of one target of the extractor.
    #[must_use]
    pub fn with_paces(mut self, paces: impl IntoIterator<Item = Pace>) -> Self {
        self.paces = paces.into_iter().collect();
        self
    }

    /// Sets how long the batch waits while no provider answers (default: 5 minutes).
    #[must_use]
    pub const fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Returns the number of rows that may be open now.
    fn limit(&self) -> usize {
        let Some(first) = self.paces.first() else { return self.rows };
        let others = self.paces.iter().skip(1).filter(|pace| pace.is_in_use());
        others.map(Pace::limit).fold(first.limit(), usize::saturating_add).clamp(1, self.rows)
    }
}

/// The end of a row in this process.
pub(crate) enum Outcome {
    /// It has a result. Whether a provider answered.
    Finished(bool),
    /// It stays open, for this reason.
    Deferred(ErrorKind, String),
    /// It was cut off by the token, and stays open as it was stored last.
    Cut,
}

/// Stores the state of one row between its steps.
struct RowJournal {
    store: Arc<dyn Store>,
    row: u64,
    history: Vec<Attempt>,
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
        self.store.checkpoint(self.row, state).await.map_err(|error| {
            let message = error.to_string();
            *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            Error::new(ErrorKind::Cancelled, message)
        })
    }
}

/// One row on its way to its result.
struct Task {
    store: Arc<dyn Store>,
    cancel: CancellationToken,
    clock: TokioClock,
    /// Whether a provider has answered a row of this process.
    may_reject: bool,
}

impl Task {
    async fn row(self, extractor: Extractor<Value>, row: OpenRow) -> Result<Outcome, BatchError> {
        let OpenRow { number, input, state, .. } = row;
        let mut state = state.unwrap_or_default();
        let now = self.clock.now();
        let run = state.run.take();
        let stored = state.stored;
        let continued: Option<Extraction<Value>> = match run {
            Some(run) => {
                let own = run.clone();
                let extraction = extractor.continued(run.resumed(stored, now));
                if extraction.is_none() {
                    state = RowState { run: Some(own), ..state }.restarted();
                }
                extraction
            }
            None => None,
        };
        let RowState { history, deferred, .. } = state;
        let extraction = continued.unwrap_or_else(|| extractor.extraction(input));
        let failed = Arc::new(Mutex::new(None));
        let journal = RowJournal {
            store: Arc::clone(&self.store),
            row: number,
            history: history.clone(),
            deferred,
            clock: self.clock,
            failed: Arc::clone(&failed),
        };
        let result = extraction.with_cancel(self.cancel.clone()).with_journal(Arc::new(journal)).run().await;
        if let Some(error) = failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(error);
        }
        settle(self.store.as_ref(), number, history, deferred, result, self.may_reject, now).await
    }
}

/// Stores the result of a run: the row is finished, or it stays open because the run ended for a reason that is not the row's own.
/// `may_reject` is whether a provider has answered another row.
pub(crate) async fn settle(
    store: &dyn Store,
    number: u64,
    history: Vec<Attempt>,
    deferred: u32,
    result: Result<formwork_core::Outcome<Value>, Error>,
    may_reject: bool,
    now: Time,
) -> Result<Outcome, BatchError> {
    let reason = match &result {
        Ok(_) => None,
        Err(error) => match error.kind() {
            ErrorKind::Cancelled => return Ok(Outcome::Cut),
            kind @ (ErrorKind::Budget | ErrorKind::Unavailable | ErrorKind::Config | ErrorKind::Schema) => {
                Some(kind)
            }
            ErrorKind::Deadline if !is_answered(error.attempts(), true) => Some(ErrorKind::Unavailable),
            _ => None,
        },
    };
    if let (Some(kind), Err(error)) = (reason, &result) {
        // A budget that is used up says nothing about the row.
        let counted = deferred + u32::from(kind != ErrorKind::Budget && may_reject);
        let is_own = may_reject && matches!(kind, ErrorKind::Config | ErrorKind::Schema);
        if kind == ErrorKind::Budget || (counted < MAX_DEFERRED && !is_own) {
            let history: Vec<_> = history.iter().chain(error.attempts()).cloned().collect();
            let message = error.to_string();
            if !history.is_empty() {
                let state = RowState { history, run: None, stored: now, deferred: counted };
                store.checkpoint(number, state).await?;
            }
            return Ok(Outcome::Deferred(kind, message));
        }
    }
    let answered = result.is_ok() || reason.is_none();
    store.finish(number, RowEnd::new(history, result)).await?;
    Ok(Outcome::Finished(answered))
}

/// The state of the providers, as far as an engine knows it.
struct Weather {
    /// Whether a provider has answered any row.
    answered: bool,
    /// The rows that found no provider since the last answer.
    unanswered: u32,
    /// The rows that the configuration ruled out since the last answer.
    ruled_out: u32,
    since: Option<Instant>,
    /// No row is started before this time.
    pause: Option<Instant>,
}

impl Weather {
    fn answered(&mut self) {
        *self = Self { answered: true, unanswered: 0, ruled_out: 0, since: None, pause: None };
    }

    /// Notes a row that found no provider; returns whether the engine gives up.
    fn unanswered(&mut self, patience: Duration) -> bool {
        let now = Instant::now();
        self.unanswered += 1;
        let since = *self.since.get_or_insert(now);
        let pause = Duration::from_secs(1 << self.unanswered.saturating_sub(1).min(5)).min(MAX_PAUSE);
        self.pause = Some(now + pause);
        if self.answered { since.elapsed() >= patience } else { self.unanswered >= MAX_UNANSWERED }
    }
}

#[async_trait]
impl Engine for InProcess {
    async fn run(&self, store: Arc<dyn Store>, cancel: &CancellationToken) -> Result<Ended, BatchError> {
        let clock = TokioClock::new();
        let mut waiting: VecDeque<OpenRow> = VecDeque::new();
        let mut open = FuturesUnordered::new();
        let (mut last, mut is_read) = (None, false);
        let mut deferred = 0_u64;
        let mut weather = Weather { answered: false, unanswered: 0, ruled_out: 0, since: None, pause: None };
        let mut ended: Option<Ended> = None;
        let cut = CancellationToken::new();
        loop {
            if cancel.is_cancelled() {
                cut.cancel();
                ended.get_or_insert(Ended::Interrupted);
            }
            if let Control::Stop(stop) = store.control().await? {
                if stop == Stop::Cancelled {
                    cut.cancel();
                }
                ended.get_or_insert(Ended::Stopped(stop));
            }
            let is_paused = weather.pause.is_some_and(|pause| Instant::now() < pause);
            let limit = if weather.since.is_some() { 1 } else { self.limit() };
            while ended.is_none() && !is_paused && open.len() < limit {
                if waiting.is_empty() && !is_read {
                    let rows = store.open_rows(last, READ).await?;
                    (last, is_read) = (rows.last().map(|row| row.number).or(last), rows.is_empty());
                    waiting.extend(rows);
                }
                let Some(row) = waiting.pop_front() else { break };
                let task = Task {
                    store: Arc::clone(&store),
                    cancel: cut.clone(),
                    clock,
                    may_reject: weather.answered,
                };
                open.push(task.row(self.extractor.clone(), row));
            }
            if open.is_empty() {
                if let Some(ended) = ended {
                    return Ok(ended);
                }
                if waiting.is_empty() && is_read {
                    if deferred == 0 {
                        return Ok(Ended::Done);
                    }
                    // The rows that were put off are asked about again.
                    (last, is_read, deferred) = (None, false, 0);
                }
            }
            let outcome = tokio::select! {
                biased;
                Some(outcome) = open.next() => Some(outcome?),
                () = cancel.cancelled(), if !cut.is_cancelled() => None,
                () = tokio::time::sleep(LOOK) => None,
            };
            match outcome {
                Some(Outcome::Finished(answered)) => {
                    if answered {
                        weather.answered();
                    }
                }
                Some(Outcome::Deferred(kind, message)) => {
                    deferred += 1;
                    match kind {
                        ErrorKind::Budget => drop(ended.get_or_insert(Ended::OverBudget(message))),
                        ErrorKind::Unavailable if weather.unanswered(self.patience) => {
                            ended.get_or_insert(Ended::Unavailable(message));
                        }
                        ErrorKind::Config | ErrorKind::Schema if !weather.answered => {
                            weather.ruled_out += 1;
                            if weather.ruled_out >= MAX_UNANSWERED {
                                ended.get_or_insert(Ended::Config(message));
                            }
                        }
                        _ => {}
                    }
                }
                Some(Outcome::Cut) | None => {}
            }
        }
    }
}
