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
