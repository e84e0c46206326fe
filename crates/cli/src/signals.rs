//! The signals that end a process.

use crate::stderr::say;

/// Waits for the signal that ends the service. A second signal ends the process at once.
pub(crate) async fn ended() {
    signal().await;
    say!("ending when open requests have their answers; once more ends at once");
    tokio::spawn(async {
        signal().await;
        std::process::exit(130);
    });
}

/// The signals to read the configuration again, from the time at which this value was made; none where the system has none.
pub(crate) struct Hangups(#[cfg(unix)] Option<tokio::signal::unix::Signal>);

impl Hangups {
    /// Starts to listen. Needs a runtime.
    pub(crate) fn new() -> Self {
        #[cfg(unix)]
        return Self(tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()).ok());
        #[cfg(not(unix))]
        Self()
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) {
        #[cfg(unix)]
        if let Some(hangups) = &mut self.0
            && hangups.recv().await.is_some()
        {
            return;
        }
        std::future::pending().await
    }
}

/// Waits for SIGINT or SIGTERM; forever if the system has neither.
pub(crate) async fn signal() {
    #[cfg(unix)]
    if let Ok(mut terminate) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => return,
            _ = terminate.recv() => return,
        }
    }
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
