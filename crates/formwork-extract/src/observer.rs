use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use formwork_core::{Ask, Attempt, Call, Delta, Error, External, Outcome, Violation};
use serde_json::Value;

/// Receives the events of a run as they happen, for logs, metrics and progress bars.
///
/// An observer only observes: nothing that it does changes what comes out. It is called from the driver, so it must not
/// block; a panic of its own is caught and the run goes on.
///
/// Texts and values are the user's data: what goes to a log should be [`Violation::masked`].
///
/// ```
/// use formwork_core::Attempt;
/// use formwork_extract::{Observer, RunId};
///
/// struct Log;
///
/// impl Observer for Log {
///     fn attempt_finished(&self, run: RunId, attempt: &Attempt) {
///         eprintln!("{run}: attempt {} of {} took {:?}", attempt.attempt, attempt.target, attempt.ended.since(attempt.started));
///     }
/// }
/// ```
#[expect(unused_variables, reason = "the names are documentation")]
pub trait Observer: Send + Sync {
    /// A call is about to be made.
    fn attempt_started(&self, run: RunId, started: &Started<'_>) {}

    /// A piece of the open call's answer has arrived.
    fn delta(&self, run: RunId, delta: &Delta) {}

    /// A call has ended. Its verdict holds the violations or the fault, if it has any; one that is accepted here may
    /// still be rejected by an async validator.
    fn attempt_finished(&self, run: RunId, attempt: &Attempt) {}

    /// The last answer was not accepted, and this is asked next.
    fn asking(&self, run: RunId, next: &Next<'_>) {}

    /// The run waits before it goes on.
    fn waiting(&self, run: RunId, wait: Duration) {}

    /// A target is left out for so long, because earlier runs found it out of service and there is another one.
    fn skipping(&self, run: RunId, target: &str, wait: Duration) {}

    /// The asynchronous checks or the fallback start.
    fn external_started(&self, run: RunId, who: External, candidate: &Value) {}

    /// The asynchronous checks or the fallback are done: the violations that were found, or the fallback's value.
    fn external_finished(&self, run: RunId, who: External, violations: &[Violation], value: Option<&Value>) {}

    /// The run has ended. Not told if its future was dropped.
    fn done(&self, run: RunId, result: &Result<Outcome<Value>, Error>) {}
}

impl<O: Observer + ?Sized> Observer for Arc<O> {
    fn attempt_started(&self, run: RunId, started: &Started<'_>) {
        (**self).attempt_started(run, started);
    }
    fn delta(&self, run: RunId, delta: &Delta) {
        (**self).delta(run, delta);
    }
    fn attempt_finished(&self, run: RunId, attempt: &Attempt) {
        (**self).attempt_finished(run, attempt);
    }
    fn asking(&self, run: RunId, next: &Next<'_>) {
        (**self).asking(run, next);
    }
    fn waiting(&self, run: RunId, wait: Duration) {
        (**self).waiting(run, wait);
    }
    fn skipping(&self, run: RunId, target: &str, wait: Duration) {
        (**self).skipping(run, target, wait);
    }
    fn external_started(&self, run: RunId, who: External, candidate: &Value) {
        (**self).external_started(run, who, candidate);
    }
    fn external_finished(&self, run: RunId, who: External, violations: &[Violation], value: Option<&Value>) {
        (**self).external_finished(run, who, violations, value);
    }
    fn done(&self, run: RunId, result: &Result<Outcome<Value>, Error>) {
        (**self).done(run, result);
    }
}

/// Tells runs apart that one observer watches at the same time. Unique within the process; `Display` is `run 7`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(u64);

impl RunId {
    pub(crate) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run {}", self.0)
    }
}

/// A call that is about to be made.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Started<'a> {
    /// Which attempt it belongs to, from 1.
    pub attempt: u32,
    /// The target's name.
    pub target: &'a str,
    /// The part of the document that is asked for.
    pub ask: &'a Ask,
    /// The call.
    pub call: &'a Call,
}

/// The next question after an answer that was not accepted, or a call that failed.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Next<'a> {
    /// Which attempt it belongs to, from 1; the same as before if only the call is repeated.
    pub attempt: u32,
    /// The target's name.
    pub target: &'a str,
    /// The part of the document that is asked for.
    pub ask: &'a Ask,
    /// How long the run waits before.
    pub wait: Duration,
}

/// An observer for whom the run pauses until what it was told is taken.
pub(crate) trait Paced: Observer {
    fn is_drained(&self) -> bool;
}

/// Everybody who is told about one run.
pub(crate) struct Observers<'a> {
    run: RunId,
    observers: &'a [Arc<dyn Observer>],
    tap: Option<&'a dyn Paced>,
}

impl<'a> Observers<'a> {
    pub(crate) fn new(observers: &'a [Arc<dyn Observer>], tap: Option<&'a dyn Paced>) -> Self {
        Self { run: RunId::next(), observers, tap }
    }

    /// Tells everybody, each on its own.
    pub(crate) fn tell(&self, say: impl Fn(&dyn Observer, RunId)) {
        if let Some(tap) = self.tap {
            say(tap, self.run);
        }
        for observer in self.observers {
            // What an observer leaves half done is its own; the run shares nothing with it that could break.
            let _ = catch_unwind(AssertUnwindSafe(|| say(observer.as_ref(), self.run)));
        }
    }

    /// Gives whoever reads a stream of updates the time to take them.
    pub(crate) async fn pause(&self) {
        if let Some(tap) = self.tap {
            // Whoever polls the run takes what was told before polling again, so nobody has to be woken.
            poll_fn(|_| if tap.is_drained() { Poll::Ready(()) } else { Poll::Pending }).await;
        }
    }
}
