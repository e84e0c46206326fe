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
}

fn default_model() -> String {
    "default".to_owned()
}

/// The kind exists in every build, so that a configuration means the same everywhere. A build without the model fails
/// in `make`.
pub(super) fn kind() -> Kind {
    Kind::of::<Config>("local", "A model in this process", |section| make(section, section.read()?))
}

#[cfg(feature = "local")]
fn make(section: &Section, config: Config) -> Result<Made, ConfigError> {
    use formwork_local::{Local, LocalOptions};

    let local = Local::open(LocalOptions::new().with_model(&config.model))
        .map_err(|error| section.error(error.to_string()))?;
    Ok(Made::in_process(std::sync::Arc::new(local), config.model))
}

#[cfg(not(feature = "local"))]
fn make(section: &Section, _: Config) -> Result<Made, ConfigError> {
    Err(section.error("this build has no model in it: build it with the feature `local`"))
}
