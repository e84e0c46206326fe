use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use formwork_core::{Answer, Call, Delta, End, Fault, FaultKind, Layer, SharedProvider};
use formwork_layers::{Around, around};
use futures_util::StreamExt as _;

use crate::concurrency::{Concurrency, Refusal};

/// A target that was called within this time counts towards the number of rows in progress.
const LATELY: Duration = Duration::from_secs(10);

tokio::task_local! {
    /// The row that is in progress.
    static ROW: Coming;
}

/// A row that was started and has not called its target yet. It counts as a call, so that no more rows start than may call.
pub(crate) struct Coming {
    rows: Arc<AtomicUsize>,
    called: AtomicBool,
}

impl Coming {
    /// Counts a row in `rows` until its first call or its end, and runs it.
    pub(crate) async fn scope<F: Future>(rows: &Arc<AtomicUsize>, row: F) -> F::Output {
        rows.fetch_add(1, Ordering::Relaxed);
        ROW.scope(Self { rows: Arc::clone(rows), called: AtomicBool::new(false) }, row).await
    }

    fn calls(&self) {
        if !self.called.swap(true, Ordering::Relaxed) {
            self.rows.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Coming {
    fn drop(&mut self) {
        self.calls();
    }
}

/// A layer that measures the calls of one target, from which an engine derives the number of rows in progress.
///
/// The number grows with every answer, and later with time. A rate limit (status 429), an overload (503, 529) or a time-out lowers it. A
/// rate limit also bounds the number of rows that start per second, and the limits of requests and tokens that the headers of responses
/// report bound them before a call is refused; see [`RateLimit`](formwork_core::RateLimit). Answers that take longer lower nothing; the
/// number only stops growing where twice as many calls take twice as long. It delays no call, because the delay would count towards the
/// deadline of the run. Wrap each target in its own pace, and pass all of them to [`InProcess::with_paces`](crate::InProcess::with_paces).
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
/// assert_eq!(pace.limit(), 8); // it grows with every answer
/// # drop(provider);
/// ```
#[derive(Debug, Clone)]
pub struct Pace(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    bounds: Concurrency,
    begun: Instant,
    called: Option<Instant>,
}

impl State {
    fn now(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }
}

impl Pace {
    /// Creates a pace that starts at 8 calls and stays between 1 and `max`.
    pub fn new(max: u32) -> Self {
        Self(Arc::new(Mutex::new(State {
            bounds: Concurrency::new(max),
            begun: Instant::now(),
            called: None,
        })))
    }

    /// Returns the number of concurrent calls that the target sustains.
    pub fn limit(&self) -> usize {
        let state = self.state();
        state.bounds.limit(state.now())
    }

    /// Returns the number of further calls that may start now.
    pub(crate) fn room(&self) -> usize {
        let mut state = self.state();
        let now = state.now();
        state.bounds.room(now)
    }

    /// Returns the time until the next call may start, as far as the calls per second are concerned.
    pub(crate) fn wait(&self) -> Duration {
        let mut state = self.state();
        let now = state.now();
        state.bounds.wait(now)
    }

    /// Returns whether the target was called within the last seconds.
    pub(crate) fn is_in_use(&self) -> bool {
        self.state().called.is_some_and(|called| called.elapsed() < LATELY)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self) -> Open {
        let mut state = self.state();
        let started = state.now();
        state.called = Some(Instant::now());
        let number = state.bounds.started(started);
        _ = ROW.try_with(Coming::calls);
        Open { pace: self.clone(), number, started, is_ended: false }
    }
}

/// A call that is open, until it is dropped.
struct Open {
    pace: Pace,
    number: u64,
    started: f64,
    is_ended: bool,
}

impl Open {
    fn answered(&mut self, end: &End) {
        let mut state = self.pace.state();
        let now = state.now();
        state.bounds.reported.answered(now, self.number, self.started, &end.usage, &end.limits);
        state.bounds.answered(now, self.started);
        self.is_ended = true;
    }

    fn failed(&mut self, fault: &Fault) {
        let refusal = match fault.kind {
            FaultKind::RateLimited => Refusal::Rate(fault.retry_after.map(|delay| delay.as_secs_f64())),
            FaultKind::Overloaded | FaultKind::Timeout => Refusal::Load,
            _ => return,
        };
        let mut state = self.pace.state();
        let now = state.now();
        state.bounds.refused(now, self.started, refusal);
        self.is_ended = true;
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if !self.is_ended {
            self.pace.state().bounds.ended();
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
        let mut open = self.start();
        let answer = inner.call(call).await.inspect_err(|fault| open.failed(fault))?;
        Ok(Answer::new(answer.inspect(move |piece| match piece {
            Ok(Delta::End(end)) => open.answered(end),
            Ok(_) => {}
            Err(fault) => open.failed(fault),
        })))
    }
}

#[cfg(test)]
mod tests {
    use formwork_core::{Completion, Counted, Enforcement, Lowered, Message, RateLimit};
    use formwork_testkit::{Reply, Scripted};

    use super::*;

    #[tokio::test]
    async fn limits_in_the_headers_of_an_answer_bound_the_next_rows() {
        let limit = |left| RateLimit::new(Counted::Requests, left, Duration::from_secs(50));
        let answers =
            [3, 0].map(|left| Reply::completion(Completion::new("{}").with_limits(vec![limit(left)])));
        let pace = Pace::new(64);
        let provider = pace.wrap(Arc::new(Scripted::new(answers)));
        let call = Call::new(vec![Message::user("34?")], Lowered::new(Enforcement::None, None));
        for room in [9, 0] {
            let answer = provider.call(&call).await.unwrap();
            assert!(answer.collect().await.is_ok());
            assert_eq!(pace.room(), room);
        }
        assert!(pace.wait() > Duration::from_secs(40));
    }
}
