use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use formwork_core::{Answer, Call, Capabilities, Delta, Fault, FaultKind, Layer, Provider, SharedProvider};
use futures_util::Stream;

use crate::Aimd;

/// A target that was called within this time counts towards the number of rows in progress.
const LATELY: Duration = Duration::from_secs(10);

/// A layer that measures the calls of one target, from which an engine derives the number of rows in progress.
///
/// It delays no call, because the delay would count towards the deadline of the run. Wrap each target in its own pace, and pass all of them to [`InProcess::with_paces`](crate::InProcess::with_paces).
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
/// assert_eq!(pace.limit(), 8); // it grows with calls that do not slow the target down
/// # drop(provider);
/// ```
#[derive(Debug, Clone)]
pub struct Pace(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    aimd: Aimd,
    called: Option<Instant>,
}

impl Pace {
    /// Creates a pace that starts at 8 calls and stays between 1 and `max`.
    pub fn new(max: u32) -> Self {
        let aimd = Aimd::new(8, max).with_slow_start();
        Self(Arc::new(Mutex::new(State { aimd, called: None })))
    }

    /// Returns the number of concurrent calls that the target sustains.
    pub fn limit(&self) -> usize {
        self.state().aimd.limit()
    }

    /// Returns whether the target was called within the last seconds.
    pub(crate) fn is_in_use(&self) -> bool {
        self.state().called.is_some_and(|called| called.elapsed() < LATELY)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, fault: &Fault) {
        if matches!(fault.kind, FaultKind::RateLimited | FaultKind::Overloaded) {
            self.state().aimd.refused();
        }
    }
}

impl Layer for Pace {
    fn wrap(&self, inner: SharedProvider) -> SharedProvider {
        Arc::new(Paced { inner, pace: self.clone() })
    }
}

#[derive(Debug)]
struct Paced {
    inner: SharedProvider,
    pace: Pace,
}

#[async_trait]
impl Provider for Paced {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    async fn call(&self, call: &Call) -> Result<Answer, Fault> {
        let started = Instant::now();
        self.pace.state().called = Some(started);
        let answer = self.inner.call(call).await;
        if let Err(fault) = &answer {
            self.pace.failed(fault);
        }
        Ok(Answer::new(Timed { answer: answer?, pace: self.pace.clone(), started, first: None }))
    }

    async fn probe(&self) -> Result<Capabilities, Fault> {
        self.inner.probe().await
    }
}

/// An answer whose time is taken until its first piece: how long the rest takes depends on its length.
struct Timed {
    answer: Answer,
    pace: Pace,
    started: Instant,
    first: Option<Duration>,
}

impl Stream for Timed {
    type Item = Result<Delta, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = Pin::new(&mut self.answer).poll_next(cx);
        match &next {
            Poll::Ready(Some(Ok(delta))) => {
                let elapsed = self.started.elapsed();
                let first = *self.first.get_or_insert(elapsed);
                if matches!(delta, Delta::End(_)) {
                    self.pace.state().aimd.answered(first);
                }
            }
            Poll::Ready(Some(Err(fault))) => self.pace.failed(fault),
            _ => {}
        }
        next
    }
}
