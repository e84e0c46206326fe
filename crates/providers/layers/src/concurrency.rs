use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use formwork_core::{Answer, Call, Delta, Fault, FaultKind, Layer, SharedProvider};
use futures_core::Stream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::around::{Around, around};

/// Limits the number of concurrent calls. Further calls wait in order.
///
/// A call ends when its answer ends or is dropped. Clones share the limit, for all providers that they wrap. The waiting time
/// of a call counts towards the deadline of its run.
///
/// ```
/// use std::sync::Arc;
/// use formwork_core::Layer;
/// use formwork_layers::Concurrency;
///
/// let layer = Concurrency::new(8);
/// let limited = layer.wrap(Arc::new(formwork_testkit::Scripted::new(["{}"])));
/// # let _ = limited;
/// ```
#[derive(Debug, Clone)]
pub struct Concurrency(Arc<Semaphore>);

impl Concurrency {
    /// Creates a limit of `calls` simultaneous calls (0 counts as 1).
    pub fn new(calls: usize) -> Self {
        Self(Arc::new(Semaphore::new(calls.clamp(1, Semaphore::MAX_PERMITS))))
    }
}

impl Layer for Concurrency {
    fn wrap(&self, inner: SharedProvider) -> SharedProvider {
        around(inner, self.clone())
    }
}

impl Around for Concurrency {
    async fn call(&self, inner: &SharedProvider, call: &Call) -> Result<Answer, Fault> {
        let permit = self.0.clone().acquire_owned().await;
        // The semaphore is never closed; should that change, the call fails instead of panicking.
        let permit =
            permit.map_err(|_| Fault::new(FaultKind::Overloaded, "no more calls are let through"))?;
        let answer = inner.call(call).await?;
        Ok(Answer::new(Held { answer, permit: Some(permit) }))
    }
}

/// An answer that holds its permit until it ends.
struct Held {
    answer: Answer,
    permit: Option<OwnedSemaphorePermit>,
}

impl Stream for Held {
    type Item = Result<Delta, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = Pin::new(&mut self.answer).poll_next(cx);
        if matches!(next, Poll::Ready(None | Some(Err(_) | Ok(Delta::End(_))))) {
            self.permit = None;
        }
        next
    }
}
