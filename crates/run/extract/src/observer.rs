use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use formwork_core::{Ask, Call, CallRecord, Delta, Error, Estimates, External, Outcome, Progress, Violation};
use serde_json::Value;

/// Receives the events of a run as they happen, for logs, metrics and progress bars.
///
/// An observer cannot change the result of a run. The driver calls it directly, so it must not
/// block. A panic in an observer is caught, and the run continues.
///
/// Texts and values are data of the user: log [`Violation::masked`] instead of the violation itself.
///
/// ```
/// use formwork_core::CallRecord;
/// use formwork_extract::{Observer, RunId};
///
/// struct Log;
///
/// impl Observer for Log {
///     fn call_finished(&self, run: RunId, call: &CallRecord) {
///         eprintln!("{run}: attempt {} of {} took {:?}", call.attempt, call.target, call.ended.since(call.started));
///     }
/// }
/// ```
#[expect(unused_variables, reason = "the names are documentation")]
pub trait Observer: Send + Sync {
    /// A call is about to be made.
    fn call_started(&self, run: RunId, started: &Started<'_>) {}

    /// A chunk of the answer has arrived.
    fn delta(&self, run: RunId, delta: &Delta) {}

    /// A call has ended. The verdict contains its violations or its fault. An async validator can still reject an answer that
    /// is accepted here.
    fn call_finished(&self, run: RunId, call: &CallRecord) {}

    /// The last answer was rejected or the last call failed, and the run makes another call.
    fn asking(&self, run: RunId, next: &Next<'_>) {}

    /// The run waits before its next call.
    fn waiting(&self, run: RunId, wait: Duration) {}

    /// The run skips a target for the time `wait`, because earlier runs found it out of service.
    fn skipping(&self, run: RunId, target: &str, wait: Duration) {}

    /// The async checks or the fallback start.
    fn external_started(&self, run: RunId, who: External, candidate: &Value) {}

    /// The async checks or the fallback have ended, with the violations of the checks or the value of the fallback.
    fn external_finished(&self, run: RunId, who: External, violations: &[Violation], value: Option<&Value>) {}

    /// The run has ended. It is not called if the future of the run was dropped.
    fn done(&self, run: RunId, result: &Result<Outcome<Value>, Error>) {}
}

impl<O: Observer + ?Sized> Observer for Arc<O> {
    fn call_started(&self, run: RunId, started: &Started<'_>) {
        (**self).call_started(run, started);
    }
    fn delta(&self, run: RunId, delta: &Delta) {
        (**self).delta(run, delta);
    }
    fn call_finished(&self, run: RunId, call: &CallRecord) {
        (**self).call_finished(run, call);
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

/// The number of a run, for observers of several runs. It is unique within the process, and displayed as `run 7`.
///
/// ```
/// use std::collections::HashMap;
///
/// use formwork_extract::RunId;
///
/// /// Counts the calls of each run.
/// fn count(calls: &mut HashMap<RunId, usize>, run: RunId) {
///     *calls.entry(run).or_default() += 1;
/// }
/// ```
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
///
/// ```
/// use formwork_core::Ask;
/// use formwork_extract::Started;
///
/// fn line(started: &Started<'_>) -> String {
///     match started.ask {
///         Ask::Patch(paths) => format!("{}: correcting {} values", started.target, paths.len()),
///         _ => format!("{}: attempt {}", started.target, started.attempt),
///     }
/// }
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Started<'a> {
    /// The number of the attempt that the call belongs to, from 1.
    pub attempt: u32,
    /// The name of the target.
    pub target: &'a str,
    /// The requested part of the document.
    pub ask: &'a Ask,
    /// The call.
    pub call: &'a Call,
}

/// The next call after a rejected answer or a failed call.
///
/// ```
/// use formwork_extract::Next;
///
/// fn line(next: &Next<'_>) -> String {
///     format!("attempt {} of {} in {} s", next.attempt, next.target, next.wait.as_secs())
/// }
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Next<'a> {
    /// The number of the attempt that the call belongs to, from 1. A repeated call keeps the number.
    pub attempt: u32,
    /// The name of the target.
    pub target: &'a str,
    /// The requested part of the document.
    pub ask: &'a Ask,
    /// The delay before the call.
    pub wait: Duration,
    /// The estimated costs of the steps between which the run chose.
    pub estimates: Estimates,
}

/// An observer that the run waits for until all its events are taken.
pub(crate) trait Paced: Observer {
    fn is_drained(&self) -> bool;

    /// The document of the open call has grown.
    fn progress(&self, progress: Progress);
}

/// The observers of one run.
pub(crate) struct Observers<'a> {
    run: RunId,
    /// The observers of all runs of the driver.
    observers: &'a [Arc<dyn Observer>],
    /// The observers of this run.
    own: &'a [Arc<dyn Observer>],
    tap: Option<&'a dyn Paced>,
}

impl<'a> Observers<'a> {
    pub(crate) fn new(
        observers: &'a [Arc<dyn Observer>],
        own: &'a [Arc<dyn Observer>],
        tap: Option<&'a dyn Paced>,
    ) -> Self {
        Self { run: RunId::next(), observers, own, tap }
    }

    /// Notifies all observers. A panic of one does not affect the others.
    pub(crate) fn notify(&self, event: impl Fn(&dyn Observer, RunId)) {
        if let Some(tap) = self.tap {
            event(tap, self.run);
        }
        for observer in self.observers.iter().chain(self.own) {
            // A panic leaves only the state of the observer inconsistent: the run shares no mutable state with it.
            let _ = catch_unwind(AssertUnwindSafe(|| event(observer.as_ref(), self.run)));
        }
    }

    /// Returns whether the run has a reader of its progress.
    pub(crate) const fn takes_progress(&self) -> bool {
        self.tap.is_some()
    }

    /// Passes the progress of the open call on.
    pub(crate) fn progress(&self, progress: impl FnOnce() -> Progress) {
        if let Some(tap) = self.tap {
            tap.progress(progress());
        }
    }

    /// Waits until the reader of a stream has taken all updates.
    pub(crate) async fn pause(&self) {
        if let Some(tap) = self.tap {
            // The reader takes all updates before it polls the run again, so no waker is needed.
            poll_fn(|_| if tap.is_drained() { Poll::Ready(()) } else { Poll::Pending }).await;
        }
    }
}
