//! Local models that the command line names.

use formwork::config::{ConfigError, Section};
use formwork_core::SharedProvider;

use crate::exit::Failed;

/// Returns the name of the local model of a section.
pub(crate) fn of(section: &Section) -> Result<String, ConfigError> {
    let settings: serde_json::Value = section.read()?;
    Ok(settings["model"].as_str().unwrap_or("default").to_owned())
}

/// Returns the name of the default local model, if a section selects it.
#[cfg(feature = "local")]
pub(crate) fn default_of(section: &Section) -> Option<&'static str> {
    use formwork_local::Known;

    let model = (section.common.kind == "local").then(|| of(section).ok()).flatten()?;
    let default = Known::find("default")?;
    (Known::find(&model) == Some(default)).then_some(default.name)
}

#[cfg(not(feature = "local"))]
pub(crate) fn default_of(_: &Section) -> Option<&'static str> {
    None
}

/// Returns whether a name without a provider selects a local model.
#[cfg(feature = "local")]
pub(crate) fn is_known(model: &str) -> bool {
    known(model).is_ok()
}

#[cfg(not(feature = "local"))]
pub(crate) const fn is_known(_: &str) -> bool {
    false
}

/// Opens a local model. Downloads it first if it is a known model and not on this machine.
#[cfg(feature = "local")]
pub(crate) async fn open(model: &str) -> Result<SharedProvider, Failed> {
    use std::sync::Arc;

    use formwork_local::{Local, LocalOptions};

    known(model).map_err(Failed::unavailable)?;
    let options = LocalOptions::new().with_model(model).with_store(store()?);
    let opened = tokio::task::spawn_blocking(move || Local::open(options)).await;
    match opened {
        Ok(Ok(local)) => Ok(Arc::new(local)),
        Ok(Err(error)) => Err(Failed::unavailable(advised(error))),
        Err(error) => Err(Failed::unavailable(format!("cannot open the model: {error}"))),
    }
}

/// Opens the store of model files, with a progress bar and the client of the model hub.
#[cfg(feature = "local")]
pub(crate) fn store() -> Result<formwork_local::Store, Failed> {
    let store = formwork_local::Store::open().map_err(Failed::unavailable)?;
    Ok(store.with_progress(crate::progress::Bytes::default()).with_hub(crate::hub::hub()))
}

#[cfg(not(feature = "local"))]
pub(crate) async fn open(_: &str) -> Result<SharedProvider, Failed> {
    Err(Failed::usage("this build does not include the local model: build it with the feature `local`"))
}

/// Rejects a name that is neither known nor looks like a file, and suggests the nearest known name.
#[cfg(feature = "local")]
pub(crate) fn known(model: &str) -> Result<(), String> {
    use std::path::Path;

    use formwork_local::{HubFile, KNOWN, Known};
    use formwork_schema::nearest;

    if HubFile::is_meant(model) {
        return model.parse::<HubFile>().map(|_| ()).map_err(|error| error.to_string());
    }
    let path = Path::new(model);
    // Servers use colons in the names of models (`qwen2.5:7b`), so a colon never belongs to a file extension.
    let has_ending = path.extension().is_some_and(|ending| !ending.to_string_lossy().contains(':'));
    if Known::find(model).is_some() || has_ending || path.exists() {
        return Ok(());
    }
    let names = || ["default"].into_iter().chain(KNOWN.iter().map(|known| known.name));
    Err(match nearest(model, names()) {
        Some(name) => format!("there is no model `{model}`: did you mean `{name}`?"),
        None => {
            let names: Vec<_> = names().collect();
            format!(
                "there is no model `{model}`: give the path of a .gguf file, one of a hub (hf:OWNER/REPOSITORY/FILE.gguf), or a name: {}; or name a provider: \
                 --provider ollama",
                names.join(", ")
            )
        }
    })
}

/// Returns the message of an engine error, with a fix if the folder for weights is the cause.
#[cfg(feature = "local")]
pub(crate) fn advised(error: formwork_local::LocalError) -> String {
    use formwork_local::{LocalError, Store};

    match (&error, Store::open()) {
        (LocalError::File { path, reason }, Ok(store)) if path.starts_with(store.folder()) => {
            let folder = store.folder().display();
            format!(
                "the folder for weights, {folder}, cannot be used: {reason}: set FORMWORK_CACHE to another folder"
            )
        }
        _ => error.to_string(),
    }
}

#[cfg(all(test, feature = "local"))]
mod tests {
    use formwork::config::Config;

    use super::default_of;

    #[test]
    fn the_default_model_is_known_by_every_name() {
        for (settings, expected) in [
            ("kind = \"local\"", true),
            ("kind = \"local\"\nmodel = \"default\"", true),
            ("kind = \"local\"\nmodel = \"smollm2-135m-instruct\"", true),
            ("kind = \"local\"\nmodel = \"other.gguf\"", false),
            ("kind = \"ollama\"\nmodel = \"default\"", false),
        ] {
            let config = Config::from_toml(&format!("[providers.a]\n{settings}\n")).unwrap();
            let found = default_of(config.section("a").unwrap());
            assert_eq!(found, expected.then_some("smollm2-135m-instruct"), "{settings}");
        }
    }
}
