//! The configuration section of a Cohere model.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Cohere;

/// The address of Cohere's API.
pub const DEFAULT_URL: &str = "https://api.cohere.com";

/// The environment variable from which Cohere's SDKs read the key.
pub const DEFAULT_KEY_ENV: &str = "CO_API_KEY";

/// The identifier of one of Cohere's models, for messages.
pub const EXAMPLE_MODEL: &str = "command-a-03-2025";

/// The configuration of a Command model behind Cohere's chat API.
///
/// ```
/// use formwork_cohere::CohereConfig;
///
/// let config: CohereConfig = serde_json::from_str(r#"{"model": "command-a-03-2025", "max_tokens": 500}"#).unwrap();
/// assert_eq!(config.base_url, "https://api.cohere.com");
/// assert_eq!(config.key_env(), Some("CO_API_KEY"));
/// assert_eq!(config.wire()?.model(), "command-a-03-2025");
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CohereConfig {
    /// The model's identifier, for example `command-a-03-2025`.
    pub model: String,
    /// The server's address, to which `/v2/chat` is appended (default: Cohere's).
    #[serde(default = "default_url")]
    pub base_url: String,
    /// The environment variable with the key, which is sent as a bearer token (default: `CO_API_KEY`). Empty: no key
    /// is sent.
    #[serde(default = "default_key_env", deserialize_with = "formwork_wire::null_is_empty")]
    pub api_key_env: String,
    /// Headers of every request (default: none), without keys.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The token limit of calls without their own. Default: the model's limit.
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u32>,
    /// Whether the model accepts `temperature` and `p` (top-p). Default: the registry's value for the model, else `true`.
    pub temperature: Option<bool>,
    /// Whether responses are streamed (default: `true`).
    #[serde(default = "formwork_wire::yes")]
    pub stream: bool,
    /// Additional properties of the request body, for example `safety_mode`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

impl CohereConfig {
    /// Returns the name of the environment variable with the key, or `None` if no key is sent.
    pub fn key_env(&self) -> Option<&str> {
        Some(self.api_key_env.as_str()).filter(|name| !name.is_empty())
    }

    /// Returns the codec with the settings of this configuration.
    ///
    /// # Errors
    /// A one-line message if the model is empty.
    pub fn wire(&self) -> Result<Cohere, String> {
        if self.model.trim().is_empty() {
            return Err("`model` is empty".to_owned());
        }
        let wire = Cohere::new(&self.model).with_stream(self.stream).with_extra(self.extra.clone());
        let mut capabilities = wire.capabilities.clone();
        capabilities.temperature = self.temperature.unwrap_or(true);
        capabilities.top_p = capabilities.temperature;
        capabilities.default_max_tokens = self.max_tokens;
        Ok(wire.with_capabilities(capabilities))
    }
}

fn default_url() -> String {
    DEFAULT_URL.to_owned()
}

fn default_key_env() -> String {
    DEFAULT_KEY_ENV.to_owned()
}
