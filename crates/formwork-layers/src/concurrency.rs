use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use formwork_core::{Answer, Call, Capabilities, Delta, Fault, FaultKind, Layer, Provider, SharedProvider};
use futures_core::Stream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// At most so many calls at once; the others wait for their turn, in order.
///
/// A call is over when its answer is, or is dropped. Every provider that one value wraps shares the limit. A run's
/// deadline counts the time that a call waits.
#[derive(Debug, Clone)]
pub struct Concurrency(Arc<Semaphore>);

impl Concurrency {
    /// At most so many calls at once, at least 1.
    pub fn new(calls: usize) -> Self {
        Self(Arc::new(Semaphore::new(calls.clamp(1, Semaphore::MAX_PERMITS))))
    }
}

impl Layer for Concurrency {
    fn wrap(&self, inner: SharedProvider) -> SharedProvider {
        Arc::new(Limited { inner, permits: self.0.clone() })
    }
}

#[derive(Debug)]
struct Limited {
    inner: SharedProvider,
    permits: Arc<Semaphore>,
}

#[async_trait]
impl Provider for Limited {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    async fn call(&self, call: &Call) -> Result<Answer, Fault> {
        let permit = self.permits.clone().acquire_owned().await;
        // Nobody closes the semaphore; if that ever changes, this is a fault and no panic.
        let permit =
            permit.map_err(|_| Fault::new(FaultKind::Overloaded, "no more calls are let through"))?;
        let answer = self.inner.call(call).await?;
        Ok(Answer::new(Held { answer, permit: Some(permit) }))
    }

    async fn probe(&self) -> Result<Capabilities, Fault> {
        self.inner.probe().await
    }
}

/// An answer that holds its permit until it is over.
struct Held {
    answer: Answer,
    permit: Option<OwnedSemaphorePermit>,
}

impl Stream for Held {
    type Item = Result<Delta, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = Pin::new(&mut self.answer).poll_next(cx);
        if matches!(next, Poll::Ready(None | Some(Err(_) | Ok(Delta::End { .. })))) {
            self.permit = None;
        }
        next
    }
}
