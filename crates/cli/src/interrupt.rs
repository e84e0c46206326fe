//! Ctrl-C and SIGTERM: cancel open calls and keep their records.

use std::future::Future;
use std::time::Duration;

use formwork_extract::CancellationToken;

use crate::exit::Failed;
use crate::{signals, terminal};

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

/// Runs the work of a command. The first signal cancels it, the second one ends the process at once.
pub(crate) fn run<T>(
    cancel: &CancellationToken,
    work: impl Future<Output = Result<T, Failed>>,
) -> Result<T, Failed> {
    drained(cancel, None, work)
}

/// The time in which a command finishes what it has begun, after the first signal.
pub(crate) struct Drain {
    pub(crate) grace: Duration,
    /// Tells the command to begin nothing more.
    pub(crate) begin: Box<dyn FnOnce() + Send>,
}

/// Runs the work of a command. The first signal drains it, if it can be drained; the next one, and the end of the time for that,
/// cancel it, and one more ends the process at once.
pub(crate) fn drained<T>(
    cancel: &CancellationToken,
    drain: Option<Drain>,
    work: impl Future<Output = Result<T, Failed>>,
) -> Result<T, Failed> {
    let runtime = runtime()?;
    let token = cancel.clone();
    runtime.spawn(async move {
        signals::signal().await;
        if let Some(Drain { grace, begin }) = drain {
            begin();
            tokio::select! {
                () = signals::signal() => {}
                () = tokio::time::sleep(grace) => {}
            }
        }
        token.cancel();
        signals::signal().await;
        terminal::close();
        std::process::exit(130);
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
