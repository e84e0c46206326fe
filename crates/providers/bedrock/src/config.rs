//! The configuration section of a model on Bedrock.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Bedrock, Mode};

/// The region if neither the configuration nor the environment names one.
pub const DEFAULT_REGION: &str = "us-east-1";

/// The environment variable from which Amazon's SDKs read a Bedrock API key.
pub const DEFAULT_KEY_ENV: &str = "AWS_BEARER_TOKEN_BEDROCK";

/// The configuration of a model on Amazon Bedrock, behind the Converse API.
///
/// ```
/// use formwork_bedrock::{BedrockConfig, Mode};
///
/// let config: BedrockConfig = serde_json::from_str(
///     r#"{"model": "us.anthropic.claude-haiku-4-5-20251001-v1:0", "region": "eu-west-1", "mode": "tool"}"#,
/// ).unwrap();
/// assert_eq!(config.address(), "https://bedrock-runtime.eu-west-1.amazonaws.com");
/// assert_eq!(config.key_env(), Some("AWS_BEARER_TOKEN_BEDROCK"));
/// assert_eq!(config.mode, Mode::Tool);
/// assert_eq!(config.wire()?.model(), "us.anthropic.claude-haiku-4-5-20251001-v1:0");
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BedrockConfig {
    /// The identifier of a model or of an inference profile (`us.anthropic.claude-haiku-4-5-20251001-v1:0`), or an ARN.
    pub model: String,
    /// The AWS region, which is part of the address (default: the environment variable `AWS_REGION`, else `us-east-1`).
    #[serde(default = "default_region")]
    pub region: String,
    /// The profile of `credentials = "aws"` (default: `AWS_PROFILE`).
    pub profile: Option<String>,
    /// The server's address (default: the address of the region).
    pub base_url: Option<String>,
    /// The environment variable with the Bedrock API key (default: `AWS_BEARER_TOKEN_BEDROCK`). Empty: no key is sent.
    #[serde(default = "default_key_env", deserialize_with = "formwork_wire::null_is_empty")]
    pub api_key_env: String,
    /// Headers of every request (default: none), without keys.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The API feature that enforces schemas (default: `schema`).
    #[serde(default)]
    pub mode: Mode,
    /// The token limit of calls without their own. Default: the model's limit.
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u32>,
    /// Whether the model accepts `temperature` and `topP`. Default: the registry's value for the model, else `true`.
    pub temperature: Option<bool>,
    /// Whether the model continues a last message of the assistant (default: the registry's value for the model, else `false`).
    pub prefill: Option<bool>,
    /// Whether responses are streamed (default: `true`).
    #[serde(default = "formwork_wire::yes")]
    pub stream: bool,
    /// Additional properties of the request body, for example `guardrailConfig`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

impl BedrockConfig {
    /// Returns the server's address: `base_url`, or the address of the region.
    pub fn address(&self) -> String {
        let of_region = || format!("https://bedrock-runtime.{}.amazonaws.com", self.region);
        self.base_url.clone().unwrap_or_else(of_region)
    }

    /// Returns the name of the environment variable with the key, or `None` if no key is sent.
    pub fn key_env(&self) -> Option<&str> {
        Some(self.api_key_env.as_str()).filter(|name| !name.is_empty())
    }

    /// Returns the codec with the settings of this configuration.
    ///
    /// # Errors
    /// A one-line message if the model is empty, or if the region contains characters other than letters, digits and `-`.
    pub fn wire(&self) -> Result<Bedrock, String> {
        if self.model.trim().is_empty() {
            return Err("`model` is empty".to_owned());
        }
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        if self.base_url.is_none() && (self.region.is_empty() || !self.region.chars().all(is_name)) {
            return Err(format!("`region` is not the name of an AWS region: {:?}", self.region));
        }
        let wire = Bedrock::new(&self.model)
            .with_mode(self.mode)
            .with_stream(self.stream)
            .with_extra(self.extra.clone());
        let mut capabilities = wire.capabilities.clone();
        capabilities.temperature = self.temperature.unwrap_or(true);
        capabilities.top_p = capabilities.temperature;
        capabilities.default_max_tokens = self.max_tokens;
        capabilities.prefill = self.prefill.unwrap_or(false);
        Ok(wire.with_capabilities(capabilities))
    }
}

fn default_region() -> String {
    DEFAULT_REGION.to_owned()
}

fn default_key_env() -> String {
    DEFAULT_KEY_ENV.to_owned()
}
