use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use formwork_core::{Ask, Attempt, Delta, Error, ErrorKind, External, Outcome, Plan, Violation};
use futures_core::Stream;
use serde_json::Value;

use crate::observer::{Next, Observer, Paced, RunId, Started};
use crate::partials::Partials;

/// An event of a run, as a stream tells it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[expect(clippy::large_enum_variant, reason = "one at a time is under way")]
pub enum Update<T> {
    /// A call is about to be made; texts and snapshots of the one before are void.
    Started {
        /// Which attempt it belongs to, from 1.
        attempt: u32,
        /// The target's name.
        target: String,
        /// The part of the document that is asked for.
        ask: Ask,
    },
    /// More text of the open call's answer: the model's own, before it is read.
    Text(String),
    /// More of what the model thinks.
    Reasoning(String),
    /// The document as far as the open call's answer has come, not validated: open strings as they are, open arrays and
    /// objects closed. Text that is not strict JSON is read as tolerantly as the answer will be. Only where the whole
    /// document is asked for, and only values of the type that the schema asks for at its root.
    Partial(Value),
    /// A call has ended. Its verdict holds the violations or the fault, if it has any.
    Finished(Attempt),
    /// The last answer was not accepted, and this is asked next.
    Asking {
        /// Which attempt it belongs to, from 1; the same as before if only the call is repeated.
        attempt: u32,
        /// The target's name.
        target: String,
        /// The part of the document that is asked for.
        ask: Ask,
        /// How long the run waits before.
        wait: Duration,
    },
    /// The asynchronous checks or the fallback have started.
    ExternalStarted(External),
    /// They are done.
    ExternalFinished {
        /// The checks or the fallback.
        who: External,
        /// The violations that the validators found.
        violations: Vec<Violation>,
    },
    /// An answer was accepted. The last update.
    Done(Outcome<T>),
}

/// The updates of one run; the last one is [`Update::Done`] or the error.
///
/// The run goes on only while somebody reads: what was pending is taken before the next piece is asked for. Dropping the
/// stream drops the open call at once.
///
/// Beside [`Stream`] there are [`next`](Self::next) and [`outcome`](Self::outcome), so that no other crate is needed.
pub struct Updates<T> {
    tap: Arc<Tap<T>>,
    run: Running<T>,
}

enum Running<T> {
    Going(Pin<Box<dyn Future<Output = Result<Outcome<T>, Error>> + Send>>),
    Ended(Option<Box<Result<Outcome<T>, Error>>>),
}

impl<T: Send> Updates<T> {
    pub(crate) fn new<F>(plan: Arc<Plan>, start: impl FnOnce(Arc<Tap<T>>) -> F) -> Self
    where
        F: Future<Output = Result<Outcome<T>, Error>> + Send + 'static,
    {
        let pending = Pending { updates: VecDeque::new(), plan, partials: None };
        let tap = Arc::new(Tap(Mutex::new(pending)));
        Self { run: Running::Going(Box::pin(start(Arc::clone(&tap)))), tap }
    }

    /// The next update; `None` after the last.
    pub async fn next(&mut self) -> Option<Result<Update<T>, Error>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Reads to the end and gives what came of it.
    ///
    /// # Errors
    /// The error that the run ends with; [`ErrorKind::Cancelled`] if the last update was read before.
    pub async fn outcome(mut self) -> Result<Outcome<T>, Error> {
        while let Some(update) = self.next().await {
            if let Update::Done(outcome) = update? {
                return Ok(outcome);
            }
        }
        Err(Error::new(ErrorKind::Cancelled, "the outcome was read before"))
    }
}

// Nothing in it is pinned in place: the run has a box of its own.
impl<T> Unpin for Updates<T> {}

impl<T: Send> Stream for Updates<T> {
    type Item = Result<Update<T>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(update) = self.tap.take() {
                return Poll::Ready(Some(Ok(update)));
            }
            match &mut self.run {
                Running::Ended(result) => {
                    return Poll::Ready(result.take().map(|result| result.map(Update::Done)));
                }
                Running::Going(run) => match run.as_mut().poll(cx) {
                    Poll::Ready(result) => self.run = Running::Ended(Some(Box::new(result))),
                    Poll::Pending if self.tap.is_drained() => return Poll::Pending,
                    Poll::Pending => {}
                },
            }
        }
    }
}

impl<T> fmt::Debug for Updates<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Updates")
    }
}

/// Turns what an observer is pending into updates.
pub(crate) struct Tap<T>(Mutex<Pending<T>>);

struct Pending<T> {
    updates: VecDeque<Update<T>>,
    plan: Arc<Plan>,
    partials: Option<Partials>,
}

impl<T> Tap<T> {
    fn take(&self) -> Option<Update<T>> {
        self.pending().updates.pop_front()
    }

    fn push(&self, update: Update<T>) {
        self.pending().updates.push_back(update);
    }

    fn pending(&self) -> MutexGuard<'_, Pending<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Send> Paced for Tap<T> {
    fn is_drained(&self) -> bool {
        self.pending().updates.is_empty()
    }
}

impl<T: Send> Observer for Tap<T> {
    fn attempt_started(&self, _: RunId, started: &Started<'_>) {
        let mut pending = self.pending();
        pending.partials = match started.ask {
            Ask::Whole => Some(Partials::new(Arc::clone(&pending.plan), Arc::clone(&started.call.lowered))),
            _ => None,
        };
        pending.updates.push_back(Update::Started {
            attempt: started.attempt,
            target: started.target.to_owned(),
            ask: started.ask.clone(),
        });
    }

    fn delta(&self, _: RunId, delta: &Delta) {
        match delta {
            Delta::Text(text) => {
                let mut pending = self.pending();
                let partial = pending.partials.as_mut().and_then(|partials| partials.push(text));
                pending.updates.push_back(Update::Text(text.clone()));
                pending.updates.extend(partial.map(Update::Partial));
            }
            Delta::Reasoning(text) => self.push(Update::Reasoning(text.clone())),
            Delta::End { .. } => {
                let mut pending = self.pending();
                let partial = pending.partials.take().and_then(Partials::end);
                pending.updates.extend(partial.map(Update::Partial));
            }
            _ => {}
        }
    }

    fn attempt_finished(&self, _: RunId, attempt: &Attempt) {
        self.push(Update::Finished(attempt.clone()));
    }

    fn asking(&self, _: RunId, next: &Next<'_>) {
        let Next { attempt, target, ask, wait } = *next;
        self.push(Update::Asking { attempt, target: target.to_owned(), ask: ask.clone(), wait });
    }

    fn external_started(&self, _: RunId, who: External, _: &Value) {
        self.push(Update::ExternalStarted(who));
    }

    fn external_finished(&self, _: RunId, who: External, violations: &[Violation], _: Option<&Value>) {
        self.push(Update::ExternalFinished { who, violations: violations.to_vec() });
    }
}
