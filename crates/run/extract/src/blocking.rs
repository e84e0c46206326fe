use std::future::Future;
use std::sync::OnceLock;

use formwork_core::{Error, ErrorKind};
use tokio::runtime::{Builder, Handle, Runtime};

/// Blocks the thread until a future is complete, and returns its output.
///
/// All blocking calls of the process share one runtime, because the open connections of a provider belong to the runtime in
/// which they were opened. A separate runtime for each call would break them.
///
/// # Errors
/// [`ErrorKind::Config`] inside of an async runtime.
///
/// ```
/// assert_eq!(formwork_extract::block_on(async { 6 * 7 })?, 42);
/// # Ok::<(), formwork_core::Error>(())
/// ```
pub fn block_on<F: Future>(future: F) -> Result<F::Output, Error> {
    if Handle::try_current().is_ok() {
        let message =
            "a blocking call is not allowed inside of an async runtime: `.await` the async method instead";
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
        Error::new(ErrorKind::Config, format!("the runtime for blocking calls did not start: {error}"))
    })?;
    Ok(RUNTIME.get_or_init(|| built))
}
