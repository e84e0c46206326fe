//! The section of a configuration file about a model on Bedrock.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::{Bedrock, Mode};

/// The region where none is named.
pub const DEFAULT_REGION: &str = "us-east-1";

/// The environment variable in which Amazon's own libraries look for a Bedrock API key.
pub const DEFAULT_KEY_ENV: &str = "AWS_BEARER_TOKEN_BEDROCK";

/// A model on Amazon Bedrock, behind the Converse API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "BedrockConfig")]
pub struct Config {
    /// The model: its identifier, that of an inference profile (`us.anthropic.claude-haiku-4-5-20251001-v1:0`), or an ARN.
    pub model: String,
    /// The region, part of the address (default: the environment variable `AWS_REGION`, else `us-east-1`).
    #[serde(default = "default_region")]
    pub region: String,
    /// The server's address, in place of the region's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The environment variable with the Bedrock API key, sent as a bearer token; empty or null to send none.
    #[serde(default = "default_key_env", deserialize_with = "null_is_empty")]
    pub api_key_env: String,
    /// Headers that are sent with every request. Keys do not belong here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// How schemas are enforced: `schema` by the format of the text, `tool` by a tool that the model is forced to call.
    #[serde(default)]
    pub mode: Mode,
    /// The limit of tokens for an answer where a call has none. By default the model's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u32>,
    /// Whether the model takes a temperature. By default what the registry says of it; yes where that says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<bool>,
    /// More members of the body, such as `guardrailConfig`. They replace members of the same name.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

impl Config {
    /// Returns the server's address.
    pub fn address(&self) -> String {
        let of_region = || format!("https://bedrock-runtime.{}.amazonaws.com", self.region);
        self.base_url.clone().unwrap_or_else(of_region)
    }

    /// Returns the name of the environment variable with the key; `None` if no key is sent.
    pub fn key_env(&self) -> Option<&str> {
        Some(self.api_key_env.as_str()).filter(|name| !name.is_empty())
    }

    /// Returns the protocol as it is configured.
    ///
    /// # Errors
    /// One line about an empty model, or a region that is no name.
    pub fn wire(&self) -> Result<Bedrock, String> {
        if self.model.trim().is_empty() {
            return Err("`model` is empty".to_owned());
        }
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        if self.base_url.is_none() && (self.region.is_empty() || !self.region.chars().all(is_name)) {
            return Err(format!("`region` is no name of a region: {:?}", self.region));
        }
        let wire = Bedrock::new(&self.model).with_mode(self.mode).with_extra(self.extra.clone());
        let mut capabilities = wire.capabilities.clone();
        capabilities.temperature = self.temperature.unwrap_or(true);
        capabilities.top_p = capabilities.temperature;
        capabilities.default_max_tokens = self.max_tokens;
        Ok(wire.with_capabilities(capabilities))
    }
}

fn default_region() -> String {
    DEFAULT_REGION.to_owned()
}

fn default_key_env() -> String {
    DEFAULT_KEY_ENV.to_owned()
}

/// Null says that no key is sent, which is different from leaving the field out.
fn null_is_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Option::<String>::deserialize(deserializer).map(Option::unwrap_or_default)
}
