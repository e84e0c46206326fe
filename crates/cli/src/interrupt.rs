//! Ctrl-C: cancels open calls and keeps their records.

use std::future::Future;

use formwork_extract::CancellationToken;

use crate::exit::Failed;
use crate::terminal;

/// Runs the work of a command that handles Ctrl-C itself.
pub(crate) fn left_to<T>(work: impl Future<Output = Result<T, Failed>>) -> Result<T, Failed> {
    let runtime = runtime()?;
    let result = runtime.block_on(work);
    runtime.shutdown_background();
    result
}

fn runtime() -> Result<tokio::runtime::Runtime, Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failed::usage(format!("the runtime cannot be started: {error}")))
}

/// Runs the work of a command. The first Ctrl-C cancels it, the second one ends the process at once.
pub(crate) fn run<T>(
    cancel: &CancellationToken,
    work: impl Future<Output = Result<T, Failed>>,
) -> Result<T, Failed> {
    let runtime = runtime()?;
    let token = cancel.clone();
    runtime.spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            token.cancel();
            if tokio::signal::ctrl_c().await.is_ok() {
                terminal::close();
                std::process::exit(130);
            }
        }
    });
    let result = runtime.block_on(async {
        tokio::select! {
            biased;
            result = work => result,
            // Does not wait for blocking work that cannot be cancelled, such as loading weights.
            () = grace(cancel) => Err(Failed::interrupted()),
        }
    });
    runtime.shutdown_background();
    result
}

/// Waits for a cancellation, and then long enough to record the open call.
async fn grace(cancel: &CancellationToken) {
    cancel.cancelled().await;
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
}
