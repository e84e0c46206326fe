use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use formwork_extract::CancellationToken;
use tokio::runtime::Handle;

/// A run that is cancelled when nobody waits for it any longer, and goes on by itself to where it notices: what it has cost is
/// then still settled and recorded.
pub struct Kept<T: Send + 'static> {
    run: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    cancel: CancellationToken,
}

impl<T: Send + 'static> Kept<T> {
    /// Keeps this run, which `cancel` ends.
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
