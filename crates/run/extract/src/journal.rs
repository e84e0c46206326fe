use async_trait::async_trait;
use formwork_core::{Cost, Error, Run};

/// Stores runs between their steps, so that another process can continue them.
///
/// The driver calls it after every call and every asynchronous check, and waits for it before the next step. It does not store
/// the result of a finished run; the caller does.
///
/// ```
/// use std::sync::Mutex;
/// use formwork_core::{Error, Run};
/// use formwork_extract::Journal;
///
/// /// Keeps the last state of one run.
/// #[derive(Default)]
/// struct Last(Mutex<Option<Run>>);
///
/// #[async_trait::async_trait]
/// impl Journal for Last {
///     async fn store(&self, run: &Run) -> Result<(), Error> {
///         *self.0.lock().unwrap() = Some(run.clone());
///         Ok(())
///     }
/// }
/// ```
#[async_trait]
pub trait Journal: Send + Sync {
    /// Stores the run, and returns when it is durable.
    ///
    /// # Errors
    /// The error that the drive ends with, because the run could not be stored.
    async fn store(&self, run: &Run) -> Result<(), Error>;

    /// Stores that the run is about to call this target, for at most this cost, and returns when that is durable (default: does
    /// nothing).
    ///
    /// # Errors
    /// The error that the drive ends with, without the call.
    async fn calling(&self, _target: &str, _reserve: Cost) -> Result<(), Error> {
        Ok(())
    }
}
