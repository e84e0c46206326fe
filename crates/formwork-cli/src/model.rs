//! The model that the command line names.

use formwork_core::SharedProvider;

use crate::exit::Failed;

/// Opens a model in this process; fetches it first if it is a known one that is not here yet.
#[cfg(feature = "local")]
pub(crate) async fn open(model: &str) -> Result<SharedProvider, Failed> {
    use std::sync::Arc;

    use formwork_local::{Local, LocalOptions};

    known(model).map_err(Failed::unavailable)?;
    let options = LocalOptions::new()
        .with_model(model)
        .with_progress(crate::progress::Bytes::default())
        .with_hub(crate::hub::hub());
    let opened = tokio::task::spawn_blocking(move || Local::open(options)).await;
    match opened {
        Ok(Ok(local)) => Ok(Arc::new(local)),
        Ok(Err(error)) => Err(Failed::unavailable(advised(error))),
        Err(error) => Err(Failed::unavailable(format!("the model could not be opened: {error}"))),
    }
}

#[cfg(not(feature = "local"))]
pub(crate) async fn open(_: &str) -> Result<SharedProvider, Failed> {
    Err(Failed::usage("this build has no model in it: it was built without the feature `local`"))
}

/// Says no to what is neither a known name nor looks like a file, and which name was most likely meant.
#[cfg(feature = "local")]
pub(crate) fn known(model: &str) -> Result<(), String> {
    use std::path::Path;

    use formwork_local::{HubFile, KNOWN, Known};
    use formwork_schema::nearest;

    if HubFile::is_meant(model) {
        return model.parse::<HubFile>().map(|_| ()).map_err(|error| error.to_string());
    }
    let path = Path::new(model);
    if Known::find(model).is_some() || path.extension().is_some() || path.exists() {
        return Ok(());
    }
    let names = || ["default"].into_iter().chain(KNOWN.iter().map(|known| known.name));
    Err(match nearest(model, names()) {
        Some(name) => format!("there is no model `{model}`: did you mean `{name}`?"),
        None => {
            let names: Vec<_> = names().collect();
            format!(
                "there is no model `{model}`: give the path of a .gguf file, one of a hub (hf:OWNER/REPOSITORY/FILE.gguf), or a name: {}",
                names.join(", ")
            )
        }
    })
}

/// An error of the engine, with what helps where the folder for weights is the trouble.
#[cfg(feature = "local")]
pub(crate) fn advised(error: formwork_local::LocalError) -> String {
    use formwork_local::{LocalError, Store};

    match (&error, Store::open()) {
        (LocalError::File { path, reason }, Ok(store)) if path.starts_with(store.folder()) => {
            let folder = store.folder().display();
            format!(
                "the folder for weights, {folder}, cannot be used: {reason}: set FORMWORK_CACHE to another one"
            )
        }
        _ => error.to_string(),
    }
}
