use std::sync::Arc;

use tokio::sync::watch;

/// A handle that ends a run from outside. Clones are the same handle; cancelling cannot be undone.
///
/// Dropping the future of a run ends it just as soon, but leaves nothing behind. An explicit cancel gives
/// [`ErrorKind::Cancelled`](formwork_core::ErrorKind) with every attempt so far, the open one included.
///
/// ```
/// use formwork_extract::CancellationToken;
///
/// let token = CancellationToken::new();
/// let handle = token.clone();
/// handle.cancel();
/// assert!(token.is_cancelled());
/// ```
#[derive(Debug, Clone)]
pub struct CancellationToken(Arc<watch::Sender<bool>>);

impl CancellationToken {
    /// A handle that nobody has used yet.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Ends every run that was given this handle. May be called from any thread, and more than once.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }

    /// Returns whether the token was cancelled.
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until somebody cancels.
    pub async fn cancelled(&self) {
        let mut receiver = self.0.subscribe();
        // The sender lives as long as `self`, so this ends only by a cancel.
        let _ = receiver.wait_for(|cancelled| *cancelled).await;
    }
}

impl Default for CancellationToken {
    fn default() -> Self {
        Self::new()
    }
}
