//! Local models that the command line names.

use formwork::config::{ConfigError, Section};
#[cfg(feature = "local")]
use formwork::providers::Access;
use formwork::providers::{Providers, local_settings};
use formwork_core::SharedProvider;

use crate::exit::Failed;

/// Returns the name of the local model of a section.
pub(crate) fn of(section: &Section) -> Result<String, ConfigError> {
    local_settings(section).map(|(model, _)| model)
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
    is_named(model) || !formwork_local::HubFile::is_meant(model) && std::path::Path::new(model).exists()
}

/// Returns whether a name by itself selects a local model, whatever files there are.
#[cfg(feature = "local")]
pub(crate) fn is_named(model: &str) -> bool {
    use std::path::Path;

    use formwork_local::{HubFile, Known};

    if HubFile::is_meant(model) {
        return model.parse::<HubFile>().is_ok();
    }
    let path = Path::new(model);
    // The names of models on servers have full stops as well: `gemini-3.5-flash`, `qwen2.5:7b`.
    let is_file = model.contains(['/', '\\']) || path.extension().is_some_and(|ending| ending == "gguf");
    Known::find(model).is_some() || is_file
}

#[cfg(not(feature = "local"))]
pub(crate) const fn is_known(_: &str) -> bool {
    false
}

#[cfg(not(feature = "local"))]
pub(crate) const fn is_named(_: &str) -> bool {
    false
}

/// Opens a local model. Downloads it first if it is a known model and not on this machine.
#[cfg(feature = "local")]
pub(crate) async fn open(
    model: &str,
    context: Option<u32>,
    providers: &Providers,
) -> Result<SharedProvider, Failed> {
    use std::sync::Arc;

    use formwork_local::{Local, LocalOptions};

    known(model, providers).map_err(Failed::unavailable)?;
    let options = LocalOptions::new().with_model(model).with_store(store()?);
    let options = context.into_iter().fold(options, LocalOptions::with_context);
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
pub(crate) async fn open(_: &str, _: Option<u32>, _: &Providers) -> Result<SharedProvider, Failed> {
    Err(Failed::usage("this build does not include the local model: build it with the feature `local`"))
}

/// Rejects a name that is neither known nor looks like a file, and suggests the nearest known name.
#[cfg(feature = "local")]
pub(crate) fn known(model: &str, providers: &Providers) -> Result<(), String> {
    use formwork_local::{HubFile, KNOWN};
    use formwork_schema::nearest;

    if HubFile::is_meant(model) {
        return model.parse::<HubFile>().map(|_| ()).map_err(|error| error.to_string());
    }
    if is_known(model) {
        return Ok(());
    }
    let names = || ["default"].into_iter().chain(KNOWN.iter().map(|known| known.name));
    if let Some(name) = nearest(model, names()) {
        return Err(format!("there is no model `{model}`: did you mean `{name}`?"));
    }
    let hosted = hosted(model, providers).join(", ");
    if !hosted.is_empty() {
        return Err(format!("there is no local model `{model}`; a server may have it: {hosted}"));
    }
    let names: Vec<_> = names().collect();
    Err(format!(
        "there is no model `{model}`: give the path of a .gguf file, one of a hub (hf:OWNER/REPOSITORY/FILE.gguf), or a name: {}; or name a provider: \
         --provider ollama",
        names.join(", ")
    ))
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
        (LocalError::Model { .. }, _) => {
            format!("{error}; a server may support the file: run it there, and name it with -m ollama/NAME")
        }
        _ => error.to_string(),
    }
}

/// Returns how the command line names a model of a server: at its vendor, else with Ollama and with the hosts whose keys are set.
/// Nothing for a text that is no name of a model.
#[cfg(feature = "local")]
fn hosted(model: &str, providers: &Providers) -> Vec<String> {
    use formwork::dialect::registry::Registry;

    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || "-._:".contains(letter);
    if !model.chars().all(is_of_name) || !model.contains(|letter: char| letter.is_ascii_digit()) {
        return Vec::new();
    }
    let vendor = Registry::embedded().lookup(model).and_then(|row| providers.kind(&row.provider).ok());
    if let Some((kind, access)) = vendor.and_then(|kind| Some((kind.name(), kind.access()?))) {
        let note =
            if access.has_key() { String::new() } else { format!(" (needs a key in {})", access.key_env) };
        return vec![format!("-m {kind}/{model}{note}")];
    }
    let hosts = with_keys(providers).filter(|(_, access)| access.is_host);
    let hosts = hosts.map(|(kind, access)| format!("-m {kind}/{model} ({} is set)", access.key_env));
    [format!("-m ollama/{model}")].into_iter().chain(hosts).collect()
}

/// Returns the names of the kinds whose keys are in the environment.
#[cfg(feature = "local")]
fn with_keys(providers: &Providers) -> impl Iterator<Item = (&str, &Access)> {
    let kinds = providers.kinds().filter_map(|kind| Some((kind.name(), kind.access()?)));
    kinds.filter(|(_, access)| access.has_key())
}

/// Returns one line about the first key in the environment that the default model leaves unused.
#[cfg(feature = "local")]
pub(crate) fn unused_key(providers: &Providers) -> Option<String> {
    let mut kinds =
        with_keys(providers).filter_map(|(kind, access)| Some((kind, access, access.example.as_ref()?)));
    let (kind, Access { key_env, .. }, model) = kinds.next()?;
    Some(format!("{key_env} is set, and the local model does not use it: -m {kind}/{model} does"))
}

#[cfg(not(feature = "local"))]
pub(crate) const fn unused_key(_: &Providers) -> Option<String> {
    None
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
