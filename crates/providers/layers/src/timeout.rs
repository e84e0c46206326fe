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
        let total = limit(self.total, start, "the end of the answer");
        let next = sooner(total, limit(self.first, start, "the first piece of the answer"));
        let answer = match next {
            Some(next) => match timeout_at(next.until, inner.call(call)).await {
                Ok(answer) => answer?,
                Err(_) => return Err(next.passed()),
            },
            None => inner.call(call).await?,
        };
        let sleep = next.map(|next| Box::pin(sleep_until(next.until)));
        let idle = self.idle;
        Ok(Answer::new(Watched { answer: Some(answer), sleep, next, total, idle }))
    }

    async fn probe(&self, inner: &SharedProvider) -> Result<Capabilities, Fault> {
        let Some(limit) = limit(self.total.or(self.first), Instant::now(), "the answer to a probe") else {
            return inner.probe().await;
        };
        timeout_at(limit.until, inner.probe()).await.unwrap_or_else(|_| Err(limit.passed()))
    }
}

/// A limit that runs.
#[derive(Clone, Copy)]
struct Limit {
    until: Instant,
    /// The whole length, for messages: the time since the last piece says nothing about the limit of the whole call.
    length: Duration,
    /// The event that is waited for.
    what: &'static str,
}

impl Limit {
    fn passed(self) -> Fault {
        let Self { length, what, .. } = self;
        Fault::new(FaultKind::Timeout, format!("{what} did not arrive within {length:?}"))
    }
}

/// Returns the limit of this length from `start`.
fn limit(length: Option<Duration>, start: Instant, what: &'static str) -> Option<Limit> {
    let length = length?;
    Some(Limit { until: start.checked_add(length)?, length, what })
}

/// Returns the limit that expires first.
fn sooner(total: Option<Limit>, other: Option<Limit>) -> Option<Limit> {
    match (total, other) {
        (Some(total), Some(other)) => Some(if other.until < total.until { other } else { total }),
        (total, other) => total.or(other),
    }
}

/// An answer whose next piece has to arrive before the sleep ends.
struct Watched {
    /// The answer; `None` once it has ended.
    answer: Option<Answer>,
    sleep: Option<Pin<Box<Sleep>>>,
    /// The limit that expires first.
    next: Option<Limit>,
    total: Option<Limit>,
    idle: Option<Duration>,
}

impl Stream for Watched {
    type Item = Result<Delta, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let Some(answer) = &mut this.answer else { return Poll::Ready(None) };
        if let Poll::Ready(next) = Pin::new(answer).poll_next(cx) {
            this.next = sooner(this.total, limit(this.idle, Instant::now(), "the next piece of the answer"));
            match (this.next.map(|next| next.until), &mut this.sleep) {
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
        Poll::Ready(this.next.map(|next| Err(next.passed())))
    }
}
