use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Kind, Made};
use crate::config::{ConfigError, Section};

/// A model in this process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "LocalConfig")]
struct Config {
    /// The path of a `.gguf` file, or a name from `formwork models` (default: the default model).
    #[serde(default = "default_model")]
    model: String,
    /// The maximum number of tokens of prompt and answer together, from 1 to 1,000,000 (default: 8192, at most the model's own
    /// maximum). Each token takes memory: 46 kB with the default model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    context: Option<NonZeroU32>,
}

/// Returns the model and the number of tokens of the context of a section of the kind `local`.
///
/// ```
/// use formwork::config::Config;
/// use formwork::providers::local_settings;
///
/// let config = Config::from_toml("[providers.a]\nkind = \"local\"\ncontext = 2048")?;
/// assert_eq!(local_settings(config.section("a")?)?, ("default".to_owned(), Some(2048)));
/// let wrong = Config::from_toml("[providers.a]\nkind = \"local\"\nthreads = 4")?;
/// assert!(local_settings(wrong.section("a")?).is_err());
/// # Ok::<(), formwork::config::ConfigError>(())
/// ```
///
/// # Errors
/// [`ConfigError`] for a setting that the model in this process does not have, and for a wrong type or number.
pub fn local_settings(section: &Section) -> Result<(String, Option<u32>), ConfigError> {
    const NOT_HERE: &str = "the model in this process has no such setting";

    let config: Config = section.read().map_err(|error| match error.message.contains("unknown field") {
        true => ConfigError { message: format!("{NOT_HERE}: {}", error.message), ..error },
        false => error,
    })?;
    match config.context.map(NonZeroU32::get) {
        Some(context) if context > 1_000_000 => {
            Err(section.error(format!("`context` is a number of tokens from 1 to 1000000, found {context}")))
        }
        context => Ok((config.model, context)),
    }
}

fn default_model() -> String {
    "default".to_owned()
}

/// The kind exists in every build, so that a configuration means the same everywhere. A build without the model fails
/// in `make`.
pub(super) fn kind() -> Kind {
    Kind::of::<Config>("local", "A model in this process", |section| make(section, local_settings(section)?))
}

#[cfg(feature = "local")]
fn make(section: &Section, (model, context): (String, Option<u32>)) -> Result<Made, ConfigError> {
    use formwork_local::{Local, LocalOptions};

    let options = LocalOptions::new().with_model(&model);
    let options = context.into_iter().fold(options, LocalOptions::with_context);
    let local = Local::open(options).map_err(|error| section.error(error.to_string()))?;
    Ok(Made::in_process(std::sync::Arc::new(local), model))
}

#[cfg(not(feature = "local"))]
fn make(section: &Section, _: (String, Option<u32>)) -> Result<Made, ConfigError> {
    Err(section.error("this build has no model in it: build it with the feature `local`"))
}
