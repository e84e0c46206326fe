//! Local models that the command line names.

use formwork::config::{ConfigError, Section};
use formwork::providers::local_settings;
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
    known(model).is_ok()
}

#[cfg(not(feature = "local"))]
pub(crate) const fn is_known(_: &str) -> bool {
    false
}

/// Opens a local model. Downloads it first if it is a known model and not on this machine.
#[cfg(feature = "local")]
pub(crate) async fn open(model: &str, context: Option<u32>) -> Result<SharedProvider, Failed> {
    use std::sync::Arc;

    use formwork_local::{Local, LocalOptions};

    known(model).map_err(Failed::unavailable)?;
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
pub(crate) async fn open(_: &str, _: Option<u32>) -> Result<SharedProvider, Failed> {
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
    // The names of models on servers have full stops as well: `gemini-3.5-flash`, `qwen2.5:7b`.
    let is_file = model.contains(['/', '\\']) || path.extension().is_some_and(|ending| ending == "gguf");
    if Known::find(model).is_some() || is_file || path.exists() {
        return Ok(());
    }
    let names = || ["default"].into_iter().chain(KNOWN.iter().map(|known| known.name));
    Err(match nearest(model, names()) {
        Some(name) => format!("there is no model `{model}`: did you mean `{name}`?"),
        None if !hosted(model).is_empty() => {
            format!("there is no local model `{model}`; a server may have it: {}", hosted(model).join(", "))
        }
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
        (LocalError::Model { .. }, _) => {
            format!("{error}; a server may support the file: run it there, and name it with -m ollama/NAME")
        }
        _ => error.to_string(),
    }
}

/// Returns how the command line names a model of a server: at its vendor, else with Ollama and with the hosts whose keys are set.
/// Nothing for a text that is no name of a model.
#[cfg(feature = "local")]
fn hosted(model: &str) -> Vec<String> {
    use formwork::dialect::registry::Registry;

    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || "-._:".contains(letter);
    if !model.chars().all(is_of_name) || !model.contains(|letter: char| letter.is_ascii_digit()) {
        return Vec::new();
    }
    let row = Registry::embedded().lookup(model);
    let vendor = row.and_then(|row| KEYS.iter().find(|(kind, ..)| *kind == row.provider));
    if let Some((kind, variable, _)) = vendor {
        let note = if is_set(variable) { String::new() } else { format!(" (needs a key in {variable})") };
        return vec![format!("-m {kind}/{model}{note}")];
    }
    let hosts = ["groq", "openrouter", "together", "fireworks", "cerebras"];
    let hosts = KEYS.iter().filter(|(kind, variable, _)| hosts.contains(kind) && is_set(variable));
    let hosts = hosts.map(|(kind, variable, _)| format!("-m {kind}/{model} ({variable} is set)"));
    [format!("-m ollama/{model}")].into_iter().chain(hosts).collect()
}

/// Kinds with the environment variables of their keys, and a model as an example.
#[cfg(feature = "local")]
const KEYS: [(&str, &str, &str); 11] = [
    ("openai", "OPENAI_API_KEY", "gpt-5.4-mini"),
    ("anthropic", "ANTHROPIC_API_KEY", "claude-sonnet-4-6"),
    ("gemini", "GEMINI_API_KEY", "gemini-3.5-flash"),
    ("mistral", "MISTRAL_API_KEY", "mistral-small-latest"),
    ("xai", "XAI_API_KEY", "grok-4.5"),
    ("deepseek", "DEEPSEEK_API_KEY", "deepseek-flash"),
    ("groq", "GROQ_API_KEY", "openai/gpt-oss-20b"),
    ("openrouter", "OPENROUTER_API_KEY", "openai/gpt-5.4-mini"),
    ("together", "TOGETHER_API_KEY", "openai/gpt-oss-20b"),
    ("fireworks", "FIREWORKS_API_KEY", "accounts/fireworks/models/gpt-oss-20b"),
    ("cerebras", "CEREBRAS_API_KEY", "gpt-oss-120b"),
];

#[cfg(feature = "local")]
fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

/// Returns one line about the first key in the environment that the default model leaves unused.
#[cfg(feature = "local")]
pub(crate) fn unused_key() -> Option<String> {
    let (kind, variable, model) = KEYS.iter().find(|(_, variable, _)| is_set(variable))?;
    Some(format!("{variable} is set, and the local model does not use it: -m {kind}/{model} does"))
}

#[cfg(not(feature = "local"))]
pub(crate) const fn unused_key() -> Option<String> {
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
