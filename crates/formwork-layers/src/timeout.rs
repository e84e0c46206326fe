use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use formwork_core::{Answer, Call, Capabilities, Delta, Fault, FaultKind, Layer, Provider, SharedProvider};
use futures_core::Stream;
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};

/// How long one call may take; what takes longer is a [`FaultKind::Timeout`]. No limit is set until one is named.
///
/// These are limits of a single call, so that a server that hangs costs one attempt. The time that a whole run may take
/// is the run's deadline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timeout {
    first: Option<Duration>,
    idle: Option<Duration>,
    total: Option<Duration>,
}

impl Timeout {
    /// No limits yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Limits the time until the first piece of the answer (default: no limit).
    #[must_use]
    pub const fn with_first(mut self, limit: Duration) -> Self {
        self.first = Some(limit);
        self
    }

    /// Limits the time between two pieces (default: no limit).
    #[must_use]
    pub const fn with_idle(mut self, limit: Duration) -> Self {
        self.idle = Some(limit);
        self
    }

    /// Limits the time until the end of the answer (default: no limit).
    #[must_use]
    pub const fn with_total(mut self, limit: Duration) -> Self {
        self.total = Some(limit);
        self
    }
}

impl Layer for Timeout {
    fn wrap(&self, inner: SharedProvider) -> SharedProvider {
        Arc::new(Timed { inner, limits: *self })
    }
}

#[derive(Debug)]
struct Timed {
    inner: SharedProvider,
    limits: Timeout,
}

#[async_trait]
impl Provider for Timed {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    async fn call(&self, call: &Call) -> Result<Answer, Fault> {
        let start = Instant::now();
        let until = |limit: Option<Duration>| limit.and_then(|limit| start.checked_add(limit));
        let total = until(self.limits.total);
        let (next, what) = sooner(total, until(self.limits.first), "its first piece");
        let answer = match next {
            Some(next) => match timeout_at(next, self.inner.call(call)).await {
                Ok(answer) => answer?,
                Err(_) => return Err(late(what, next - start)),
            },
            None => self.inner.call(call).await?,
        };
        let sleep = next.map(|next| Box::pin(sleep_until(next)));
        let idle = self.limits.idle;
        Ok(Answer::new(Watched { answer: Some(answer), sleep, what, start, total, idle }))
    }

    async fn probe(&self) -> Result<Capabilities, Fault> {
        let Some(total) = self.limits.total.or(self.limits.first) else { return self.inner.probe().await };
        let probed = tokio::time::timeout(total, self.inner.probe()).await;
        probed.unwrap_or_else(|_| Err(late("the answer to a probe", total)))
    }
}

/// Returns the limit that comes first, and what it is about.
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

/// An answer whose next piece is waited for no longer than until the sleep is over.
struct Watched {
    /// `None` once it is over.
    answer: Option<Answer>,
    sleep: Option<Pin<Box<Sleep>>>,
    what: &'static str,
    /// When what is waited for began to be waited for.
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
                // The timer is moved, not made anew: there may be thousands of pieces.
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
