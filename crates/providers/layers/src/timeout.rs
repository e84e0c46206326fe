use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use formwork_core::{Answer, Call, Capabilities, Delta, Fault, FaultKind, Layer, SharedProvider};
use futures_core::Stream;
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};

use crate::around::{Around, around};

/// Limits the time of one call; a slower call fails with [`FaultKind::Timeout`]. There is no limit by default.
///
/// The limits apply to single calls, so that a server that hangs costs one attempt. The deadline of a run limits its total
/// time.
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use formwork_core::Layer;
/// use formwork_layers::Timeout;
///
/// let layer = Timeout::new().with_first(Duration::from_secs(30)).with_idle(Duration::from_secs(20));
/// let limited = layer.wrap(Arc::new(formwork_testkit::Scripted::new(["{}"])));
/// # let _ = limited;
/// ```
#[must_use]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timeout {
    first: Option<Duration>,
    idle: Option<Duration>,
    total: Option<Duration>,
}

impl Timeout {
    /// Creates a layer without limits.
    pub fn new() -> Self {
        Self::default()
    }

    formwork_core::setters! {
        /// Limits the time until the first piece of the answer (default: no limit).
        pub const fn with_first(Some(first): Duration);

        /// Limits the time between two pieces of the answer (default: no limit).
        pub const fn with_idle(Some(idle): Duration);

        /// Limits the time until the end of the answer (default: no limit).
        pub const fn with_total(Some(total): Duration);
    }
}

impl Layer for Timeout {
    fn wrap(&self, inner: SharedProvider) -> SharedProvider {
        around(inner, *self)
    }
}

impl Around for Timeout {
    async fn call(&self, inner: &SharedProvider, call: &Call) -> Result<Answer, Fault> {
        let start = Instant::now();
        let until = |limit: Option<Duration>| limit.and_then(|limit| start.checked_add(limit));
        let total = until(self.total);
        let (next, what) = sooner(total, until(self.first), "its first piece");
        let answer = match next {
            Some(next) => match timeout_at(next, inner.call(call)).await {
                Ok(answer) => answer?,
                Err(_) => return Err(late(what, next - start)),
            },
            None => inner.call(call).await?,
        };
        let sleep = next.map(|next| Box::pin(sleep_until(next)));
        let idle = self.idle;
        Ok(Answer::new(Watched { answer: Some(answer), sleep, what, start, total, idle }))
    }

    async fn probe(&self, inner: &SharedProvider) -> Result<Capabilities, Fault> {
        let Some(total) = self.total.or(self.first) else { return inner.probe().await };
        let probed = tokio::time::timeout(total, inner.probe()).await;
        probed.unwrap_or_else(|_| Err(late("the answer to a probe", total)))
    }
}

/// Returns the limit that expires first, with its description.
fn sooner(
    total: Option<Instant>,
    other: Option<Instant>,
    what: &'static str,
) -> (Option<Instant>, &'static str) {
    match (total, other) {
        (Some(total), Some(other)) if other < total => (Some(other), what),
        (None, Some(other)) => (Some(other), what),
        (total, _) => (total, "the end of the answer"),
    }
}

fn late(what: &str, after: Duration) -> Fault {
    Fault::new(FaultKind::Timeout, format!("{what} was not there after {:.1} s", after.as_secs_f64()))
}

/// An answer whose next piece has to arrive before the sleep ends.
struct Watched {
    /// The answer; `None` once it has ended.
    answer: Option<Answer>,
    sleep: Option<Pin<Box<Sleep>>>,
    what: &'static str,
    /// The time at which the wait for the next piece began.
    start: Instant,
    total: Option<Instant>,
    idle: Option<Duration>,
}

impl Stream for Watched {
    type Item = Result<Delta, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let Some(answer) = &mut this.answer else { return Poll::Ready(None) };
        if let Poll::Ready(next) = Pin::new(answer).poll_next(cx) {
            let now = Instant::now();
            let idle = this.idle.and_then(|limit| now.checked_add(limit));
            let (until, what) = sooner(this.total, idle, "its next piece");
            (this.what, this.start) = (what, now);
            match (until, &mut this.sleep) {
                // The timer is reset instead of created anew, because there may be thousands of pieces.
                (Some(until), Some(sleep)) => sleep.as_mut().reset(until),
                (until, sleep) => *sleep = until.map(|until| Box::pin(sleep_until(until))),
            }
            return Poll::Ready(next);
        }
        let over = this.sleep.as_mut().is_some_and(|sleep| sleep.as_mut().poll(cx).is_ready());
        if !over {
            return Poll::Pending;
        }
        this.answer = None;
        Poll::Ready(Some(Err(late(this.what, this.start.elapsed()))))
    }
}
