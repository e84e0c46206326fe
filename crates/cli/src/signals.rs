//! The signals that end a service.

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

#[cfg(unix)]
async fn signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let interrupt = tokio::signal::ctrl_c();
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => tokio::select! {
            _ = interrupt => {}
            _ = terminate.recv() => {}
        },
        Err(_) => _ = interrupt.await,
    }
}

#[cfg(not(unix))]
async fn signal() {
    _ = tokio::signal::ctrl_c().await;
}
