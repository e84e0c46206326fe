use std::future::Future;
use std::sync::OnceLock;

use formwork_core::{Error, ErrorKind};
use tokio::runtime::{Builder, Handle, Runtime};

/// Waits for a future and blocks the thread meanwhile.
///
/// All blocking calls of the process share one runtime, on the threads that wait: connections that a provider keeps open
/// belong to the runtime they were opened on, so a runtime for each call would break them.
///
/// # Errors
/// [`ErrorKind::Config`] inside of an async runtime.
pub fn block_on<F: Future>(future: F) -> Result<F::Output, Error> {
    if Handle::try_current().is_ok() {
        let message =
            "a blocking call inside of an async runtime would stop it: use the async one and `.await` it";
        return Err(Error::new(ErrorKind::Config, message));
    }
    Ok(runtime()?.block_on(future))
}

fn runtime() -> Result<&'static Runtime, Error> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let built = Builder::new_current_thread().enable_all().build().map_err(|error| {
        Error::new(ErrorKind::Config, format!("the runtime for blocking calls cannot be started: {error}"))
    })?;
    Ok(RUNTIME.get_or_init(|| built))
}
