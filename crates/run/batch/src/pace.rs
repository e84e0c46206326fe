use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use formwork_core::{Answer, Call, Delta, Fault, FaultKind, Layer, SharedProvider};
use formwork_layers::{Around, around};
use futures_util::StreamExt as _;

use crate::limit::{Begun, Limit};

/// A target that was called within this time counts towards the number of rows in progress.
const LATELY: Duration = Duration::from_secs(10);

/// The number of calls with which a pace starts.
const START: u32 = 8;

/// A layer that measures the calls of one target, from which an engine derives the number of rows in progress.
///
/// The number grows while the throughput grows and no call is refused. Statuses 429, 503 and 529 and time limits lower it, and begin a rate at which rows may
/// start; a longer latency alone never does. It delays no call, because the delay would count towards the deadline of the run. Wrap each target in its own pace, and pass all of them to [`InProcess::with_paces`](crate::InProcess::with_paces).
///
/// ```
/// use std::sync::Arc;
///
/// use formwork_batch::Pace;
/// use formwork_core::Layer as _;
/// use formwork_testkit::Scripted;
///
/// let pace = Pace::new(64);
/// let provider = pace.wrap(Arc::new(Scripted::new([r#"{"age": 34}"#])));
/// assert_eq!(pace.limit(), 8); // it grows with the throughput
/// # drop(provider);
/// ```
#[derive(Debug, Clone)]
pub struct Pace(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    limit: Limit,
    created: Instant,
    called: Option<Instant>,
}

impl State {
    fn now(&self) -> f64 {
        self.created.elapsed().as_secs_f64()
    }
}

impl Pace {
    /// Creates a pace that starts at 8 calls and stays between 1 and `max`.
    pub fn new(max: u32) -> Self {
        let state = State { limit: Limit::new(START, max), created: Instant::now(), called: None };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Returns the number of concurrent calls that the target sustains.
    pub fn limit(&self) -> usize {
        self.state().limit.number()
    }

    /// Returns the time until the target takes another row; zero while it has refused no call.
    pub(crate) fn wait(&self) -> Duration {
        let state = self.state();
        state.limit.wait(state.now())
    }

    /// Notes that a row starts.
    pub(crate) fn row_started(&self) {
        let mut state = self.state();
        let now = state.now();
        state.limit.row_started(now);
    }

    /// Returns whether the target was called within the last seconds.
    pub(crate) fn is_in_use(&self) -> bool {
        self.state().called.is_some_and(|called| called.elapsed() < LATELY)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self) -> Open {
        let mut state = self.state();
        state.called = Some(Instant::now());
        let now = state.now();
        Open { call: Some(state.limit.called(now)), pace: self.clone() }
    }
}

/// A call until its end. One that is dropped says nothing about its target.
struct Open {
    call: Option<Begun>,
    pace: Pace,
}

impl Open {
    fn answered(&mut self) {
        if let Some(call) = self.call.take() {
            let mut state = self.pace.state();
            let now = state.now();
            state.limit.answered(now, call);
        }
    }

    fn failed(&mut self, fault: &Fault) {
        let is_refusal =
            matches!(fault.kind, FaultKind::RateLimited | FaultKind::Overloaded | FaultKind::Timeout);
        if let Some(call) = self.call.take_if(|_| is_refusal) {
            let mut state = self.pace.state();
            let now = state.now();
            state.limit.refused(now, call, fault.retry_after.unwrap_or_default());
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.call.is_some() {
            self.pace.state().limit.ended();
        }
    }
}

impl Layer for Pace {
    fn wrap(&self, inner: SharedProvider) -> SharedProvider {
        around(inner, self.clone())
    }
}

impl Around for Pace {
    async fn call(&self, inner: &SharedProvider, call: &Call) -> Result<Answer, Fault> {
        let mut open = self.begin();
        let answer = inner.call(call).await;
        let answer = answer.inspect_err(|fault| open.failed(fault))?;
        Ok(Answer::new(answer.inspect(move |piece| match piece {
            Ok(Delta::End(_)) => open.answered(),
            Ok(_) => {}
            Err(fault) => open.failed(fault),
        })))
    }
}
