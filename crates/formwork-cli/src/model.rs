//! The model that the command line names.

use formwork_core::SharedProvider;

use crate::exit::Failed;

/// Opens a model in this process; fetches it first if it is a known one that is not here yet.
#[cfg(feature = "local")]
pub(crate) async fn open(model: &str) -> Result<SharedProvider, Failed> {
    use std::sync::Arc;

    use formwork_local::{Local, LocalOptions};

    let options = LocalOptions::new().with_model(model).with_progress(crate::progress::Bytes::default());
    let opened = tokio::task::spawn_blocking(move || Local::open(options)).await;
    match opened {
        Ok(Ok(local)) => Ok(Arc::new(local)),
        Ok(Err(error)) => Err(Failed::unavailable(error)),
        Err(error) => Err(Failed::unavailable(format!("the model could not be opened: {error}"))),
    }
}

#[cfg(not(feature = "local"))]
pub(crate) async fn open(_: &str) -> Result<SharedProvider, Failed> {
    Err(Failed::usage("this build has no model in it: it was built without the feature `local`"))
}
