use std::sync::Arc;

use tokio::sync::watch;

/// A handle that cancels runs from outside. Clones share the same state; a cancellation cannot be undone.
///
/// A cancelled run returns [`ErrorKind::Cancelled`](formwork_core::ErrorKind) with every call so far, including the open
/// one. Dropping the future of a run ends the run just as soon, but returns nothing.
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
    /// Creates a token that is not cancelled.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Cancels all runs with this token. It can be called from any thread, and repeatedly.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }

    /// Returns whether the token was cancelled.
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the token is cancelled.
    pub async fn cancelled(&self) {
        let mut receiver = self.0.subscribe();
        // The sender lives as long as `self`, so only a cancellation ends this.
        let _ = receiver.wait_for(|cancelled| *cancelled).await;
    }
}

impl Default for CancellationToken {
    fn default() -> Self {
        Self::new()
    }
}
