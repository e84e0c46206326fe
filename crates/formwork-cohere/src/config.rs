//! The section of a configuration file about a model of Cohere.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::Cohere;

/// The address of Cohere's API.
pub const DEFAULT_URL: &str = "https://api.cohere.com";

/// The environment variable in which Cohere's own libraries look for the key.
pub const DEFAULT_KEY_ENV: &str = "CO_API_KEY";

/// A Command model behind Cohere's chat API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "CohereConfig")]
pub struct Config {
    /// The model: `command-a-03-2025`.
    pub model: String,
    /// The server's address; `/v2/chat` is put behind it.
    #[serde(default = "default_url")]
    pub base_url: String,
    /// The environment variable with the key, sent as a bearer token; empty or null to send none.
    #[serde(default = "default_key_env", deserialize_with = "null_is_empty")]
    pub api_key_env: String,
    /// Headers that are sent with every request. Keys do not belong here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The limit of tokens for an answer where a call has none. By default the model's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u32>,
    /// Whether the model takes a temperature. By default what the registry says of it; yes where that says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<bool>,
    /// More members of the body, such as `safety_mode`. They replace members of the same name.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

impl Config {
    /// Returns the name of the environment variable with the key; `None` if no key is sent.
    pub fn key_env(&self) -> Option<&str> {
        Some(self.api_key_env.as_str()).filter(|name| !name.is_empty())
    }

    /// Returns the protocol as it is configured.
    ///
    /// # Errors
    /// One line about an empty model.
    pub fn wire(&self) -> Result<Cohere, String> {
        if self.model.trim().is_empty() {
            return Err("`model` is empty".to_owned());
        }
        let wire = Cohere::new(&self.model).with_extra(self.extra.clone());
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

/// Null says that no key is sent, which is different from leaving the field out.
fn null_is_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Option::<String>::deserialize(deserializer).map(Option::unwrap_or_default)
}
