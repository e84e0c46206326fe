//! The loop over rows that the in-process engine and the Restate engine share.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use formwork_core::{CallRecord, ErrorKind, Time, is_answered};
use formwork_extract::CancellationToken;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::row::{Accepted, RunError};
use crate::{BatchError, Control, Ended, OpenRow, RowEnd, RowState, Stop, Store};

/// The number of rows that are read from the store at a time.
pub(crate) const READ: usize = 256;

/// The interval at which the control of the store is read.
const LOOK: Duration = Duration::from_millis(250);

/// The maximum number of times that a row is deferred before it is rejected, if other rows are answered meanwhile.
pub(crate) const MAX_DEFERRED: u32 = 3;

/// The number of consecutive rows without a reachable provider that ends the batch, if no row was ever answered.
const MAX_UNANSWERED: u32 = 3;

/// The longest pause between two rows while no provider answers.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// One more row per this number of rows may start while results are being stored. More would repeat more calls after a kill.
const STORING_SHARE: usize = 4;

/// Asks about single rows.
#[async_trait]
pub(crate) trait AsksRows: Send + Sync {
    /// Returns the number of further rows that may start now, if `open` are open.
    fn room(&self, open: usize) -> usize;

    /// Returns the time until another row may start, if that depends on time (default: it does not).
    fn wait(&self) -> Duration {
        Duration::ZERO
    }

    /// Takes a row to its result, and stores that.
    async fn row(&self, store: &Arc<dyn Store>, row: OpenRow, turn: Turn) -> Result<Outcome, BatchError>;
}

/// The state of the loop when a row starts.
pub(crate) struct Turn {
    /// Whether a provider has answered another row.
    pub(crate) may_reject: bool,
    /// Ends the row early, which stays open then.
    pub(crate) cut: CancellationToken,
    storing: Arc<Storing>,
}

impl Turn {
    /// Returns the turn of a row outside of the loop.
    pub(crate) fn alone(may_reject: bool) -> Self {
        Self { may_reject, cut: CancellationToken::new(), storing: Arc::default() }
    }
}

/// The number of rows whose results are being stored. They make no further calls, so other rows start meanwhile: a commit takes
/// some milliseconds, in which the provider would have one call less.
#[derive(Default)]
struct Storing {
    rows: AtomicUsize,
    begun: Notify,
}

impl Storing {
    fn begin(&self) -> impl Drop {
        self.rows.fetch_add(1, Ordering::Relaxed);
        self.begun.notify_one();
        End(self)
    }
}

struct End<'a>(&'a Storing);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.rows.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The end of a row in an engine.
pub(crate) enum Outcome {
    /// It has a result. Whether a provider answered.
    Finished(bool),
    /// It stays open, for this reason.
    Deferred(ErrorKind, String),
    /// It was cut off by the token, and stays open as it was stored last.
    Cut,
}

/// Stores the result of a run: the row is finished, or it stays open because the run ended for a reason that is not the row's own.
pub(crate) async fn settle(
    store: &dyn Store,
    number: u64,
    history: Vec<CallRecord>,
    deferred: u32,
    result: Result<Accepted, RunError>,
    turn: &Turn,
    now: Time,
) -> Result<Outcome, BatchError> {
    let reason = match &result {
        Ok(_) => None,
        Err(error) => match error.kind {
            ErrorKind::Cancelled => return Ok(Outcome::Cut),
            kind @ (ErrorKind::Budget | ErrorKind::Unavailable | ErrorKind::Config | ErrorKind::Schema) => {
                Some(kind)
            }
            // The row has waited for the budget of the batch until its deadline.
            ErrorKind::Deadline if error.calls.is_empty() => Some(ErrorKind::Deadline),
            ErrorKind::Deadline if !is_answered(&error.calls, true) => Some(ErrorKind::Unavailable),
            _ => None,
        },
    };
    if let (Some(kind), Err(error)) = (reason, &result) {
        // An exhausted budget and waiting for it are no fault of the row.
        let is_of_budget = matches!(kind, ErrorKind::Budget | ErrorKind::Deadline);
        let counted = deferred + u32::from(!is_of_budget && turn.may_reject);
        let is_own = turn.may_reject && matches!(kind, ErrorKind::Config | ErrorKind::Schema);
        if is_of_budget || (counted < MAX_DEFERRED && !is_own) {
            let history: Vec<_> = history.iter().chain(&error.calls).cloned().collect();
            let message = match kind {
                ErrorKind::Config => format!("{kind}: {}", error.message),
                _ => error.message.clone(),
            };
            if !history.is_empty() {
                let state = RowState { history, run: None, stored: now, deferred: counted };
                store.checkpoint(number, state).await?;
            }
            return Ok(Outcome::Deferred(kind, message));
        }
    }
    let answered = result.is_ok() || reason.is_none();
    let _storing = turn.storing.begin();
    store.finish(number, RowEnd::of(history, result)).await?;
    Ok(Outcome::Finished(answered))
}

/// The state of the providers, as far as an engine knows it.
#[derive(Default)]
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
        if self.since.is_some() {
            tracing::warn!(target: "formwork", "a provider answers again: the batch continues");
        }
        *self = Self { answered: true, ..Self::default() };
    }

    /// Counts a row without a reachable provider, for this reason; returns whether the engine has to end.
    fn unanswered(&mut self, patience: Duration, reason: &str) -> bool {
        if self.since.is_none() && self.answered {
            tracing::warn!(
                target: "formwork",
                "no provider answers ({reason}): the batch pauses, and tries one row at a time for up to {} s",
                patience.as_secs()
            );
        }
        let now = Instant::now();
        self.unanswered += 1;
        let since = *self.since.get_or_insert(now);
        let pause = Duration::from_secs(1 << self.unanswered.saturating_sub(1).min(5)).min(MAX_PAUSE);
        self.pause = Some(now + pause);
        if self.answered { since.elapsed() >= patience } else { self.unanswered >= MAX_UNANSWERED }
    }
}

/// Processes the open rows of a store, as many at a time as `asks` allows. `patience` is the time for which it continues while no provider
/// answers.
pub(crate) async fn drive(
    asks: &impl AsksRows,
    store: &Arc<dyn Store>,
    cancel: &CancellationToken,
    patience: Duration,
) -> Result<Ended, BatchError> {
    let mut waiting: VecDeque<OpenRow> = VecDeque::new();
    let mut open = FuturesUnordered::new();
    let (mut last, mut is_read) = (None, false);
    let mut deferred = 0_u64;
    let mut weather = Weather::default();
    let mut ended: Option<Ended> = None;
    let (cut, storing) = (CancellationToken::new(), Arc::new(Storing::default()));
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
        let stored = storing.rows.load(Ordering::Relaxed).min(open.len() / STORING_SHARE);
        let calling = open.len() - stored;
        let mut room =
            if weather.since.is_some() { 1_usize.saturating_sub(calling) } else { asks.room(calling) };
        while ended.is_none() && !is_paused && room > 0 {
            room -= 1;
            if waiting.is_empty() && !is_read {
                let rows = store.open_rows(last, READ).await?;
                (last, is_read) = (rows.last().map(|row| row.number).or(last), rows.is_empty());
                waiting.extend(rows);
            }
            let Some(row) = waiting.pop_front() else { break };
            // A row that is tried during an outage is not to blame for it.
            let may_reject = weather.answered && weather.since.is_none();
            let turn = Turn { may_reject, cut: cut.clone(), storing: Arc::clone(&storing) };
            open.push(asks.row(store, row, turn));
        }
        if open.is_empty() {
            if let Some(ended) = ended {
                return Ok(ended);
            }
            if waiting.is_empty() && is_read {
                if deferred == 0 {
                    return Ok(Ended::Done);
                }
                // Deferred rows are tried again.
                (last, is_read, deferred) = (None, false, 0);
            }
        }
        let wait = Some(asks.wait()).filter(|wait| !wait.is_zero()).map_or(LOOK, |wait| wait.min(LOOK));
        let outcome = tokio::select! {
            biased;
            Some(outcome) = open.next() => Some(outcome?),
            () = storing.begun.notified() => None,
            () = cancel.cancelled(), if !cut.is_cancelled() => None,
            () = tokio::time::sleep(wait) => None,
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
                    ErrorKind::Unavailable if weather.unanswered(patience, &message) => {
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
