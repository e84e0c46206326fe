use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use formwork_extract::CancellationToken;
use tokio::runtime::Handle;

/// A run that is cancelled when this future is dropped, and continues in the background until it notices the cancellation, so that
/// its cost is still settled and recorded.
///
/// ```
/// use formwork_extract::CancellationToken;
/// use formwork_serve::Kept;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let cancel = CancellationToken::new();
/// let (run, (done, recorded)) = (cancel.clone(), tokio::sync::oneshot::channel());
/// let run = Kept::new(
///     async move {
///         run.cancelled().await;
///         _ = done.send("cancelled and recorded");
///     },
///     cancel,
/// );
/// drop(run); // its client has disconnected
/// assert_eq!(recorded.await, Ok("cancelled and recorded"));
/// # });
/// ```
pub struct Kept<T: Send + 'static> {
    run: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    cancel: CancellationToken,
}

impl<T: Send + 'static> Kept<T> {
    /// Wraps a run that ends when `cancel` is cancelled.
    pub fn new(run: impl Future<Output = T> + Send + 'static, cancel: CancellationToken) -> Self {
        Self { run: Some(Box::pin(run)), cancel }
    }
}

impl<T: Send + 'static> Future for Kept<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        // The run is taken out, so that a run that panicked is not polled again on drop.
        let Some(mut run) = self.run.take() else { return Poll::Pending };
        let polled = run.as_mut().poll(context);
        if polled.is_pending() {
            self.run = Some(run);
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Kept<T> {
    fn drop(&mut self) {
        let Some(run) = self.run.take() else { return };
        self.cancel.cancel();
        // Without a runtime the process ends, and nothing can be recorded.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(run);
        }
    }
}

impl<T: Send + 'static> fmt::Debug for Kept<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kept")
    }
}
