//! The section of a configuration file about a Claude model.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::{Anthropic, Mode, Thinking};

/// The address of Anthropic's API.
pub const DEFAULT_URL: &str = "https://api.anthropic.com";

/// The environment variable in which Anthropic's own libraries look for the key.
pub const DEFAULT_KEY_ENV: &str = "ANTHROPIC_API_KEY";

/// A Claude model behind the Messages API.
///
/// ```
/// use formwork_anthropic::{Config, Thinking};
///
/// let config: Config =
///     serde_json::from_str(r#"{"model": "claude-sonnet-4-6", "thinking": {"budget_tokens": 2048}}"#).unwrap();
/// assert_eq!(config.base_url(), "https://api.anthropic.com");
/// assert_eq!(config.thinking, Some(Thinking::Budget { budget_tokens: 2048 }));
/// assert_eq!(config.wire()?.model(), "claude-sonnet-4-6");
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "AnthropicConfig")]
pub struct Config {
    /// The model: `claude-sonnet-4-6`.
    pub model: String,
    /// The server's address; `/v1/messages` is put behind it. A `/v1` at its end is left out.
    #[serde(default = "default_url")]
    pub base_url: String,
    /// The environment variable with the key, sent as `x-api-key`; empty or null to send none.
    #[serde(default = "default_key_env", deserialize_with = "null_is_empty")]
    pub api_key_env: String,
    /// Headers that are sent with every request, such as `anthropic-beta`. Keys do not belong here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// How schemas are enforced: `schema` by the output format, `tool` by a tool that the model is forced to call. By default
    /// what the registry says of the model; `schema` where that says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Whether the forced tool is strict. By default what the registry says of the model; yes where that says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
    /// Whether the model thinks before it answers: `off`, `adaptive`, or `{ budget_tokens = 2048 }` (at least 1024). By
    /// default nothing is sent, and the model's own default holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
    /// The effort that the model spends: `low`, `medium`, `high`, and more with some models. By default nothing is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Whether the system prompt is marked for the API's cache.
    #[serde(default = "yes")]
    pub cache: bool,
    /// The limit of tokens for an answer where a call has none. By default the model's own limit, 8192 where that is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u32>,
    /// Whether the model takes a temperature. By default what the registry says of it; no where that says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<bool>,
    /// Whether answers are streamed.
    #[serde(default = "yes")]
    pub stream: bool,
    /// More members of the body, such as `metadata`. They replace members of the same name.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

impl Config {
    /// Returns the configuration of this model at the vendor, with defaults for everything else.
    pub fn new(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            base_url: default_url(),
            api_key_env: default_key_env(),
            headers: BTreeMap::new(),
            mode: None,
            strict: None,
            thinking: None,
            effort: None,
            cache: true,
            max_tokens: None,
            temperature: None,
            stream: true,
            extra: Map::new(),
        }
    }

    /// Returns the address that `/v1/messages` is put behind, without a `/v1` of its own: other clients have it in theirs.
    pub fn base_url(&self) -> &str {
        let url = self.base_url.trim_end_matches('/');
        url.strip_suffix("/v1").unwrap_or(url).trim_end_matches('/')
    }

    /// Returns the name of the environment variable with the key; `None` if no key is sent.
    pub fn key_env(&self) -> Option<&str> {
        Some(self.api_key_env.as_str()).filter(|name| !name.is_empty())
    }

    /// Returns the protocol as it is configured.
    ///
    /// # Errors
    /// One line about settings that the API refuses: an empty model, a thinking budget below 1024 tokens or not below
    /// `max_tokens`, or a forced tool for a model that is asked to think.
    pub fn wire(&self) -> Result<Anthropic, String> {
        /// The smallest budget that the API takes.
        const MIN_BUDGET: u32 = 1024;

        if self.model.trim().is_empty() {
            return Err("`model` is empty".to_owned());
        }
        if let Some(Thinking::Budget { budget_tokens }) = self.thinking {
            if budget_tokens < MIN_BUDGET {
                return Err(format!(
                    "`thinking.budget_tokens` is {budget_tokens}, and the least is {MIN_BUDGET}"
                ));
            }
            if self.max_tokens.is_some_and(|most| most <= budget_tokens) {
                return Err("`thinking.budget_tokens` has to be less than `max_tokens`".to_owned());
            }
        }
        if self.mode == Some(Mode::Tool) && self.thinking.is_some_and(Thinking::is_on) {
            return Err("a model that thinks cannot be forced to call a tool: leave out `mode = \"tool\"`, or set `thinking = \"off\"`".to_owned());
        }
        let mut wire = Anthropic::new(&self.model);
        let mut capabilities = wire.capabilities.clone();
        capabilities.temperature = self.temperature.unwrap_or(false);
        capabilities.default_max_tokens = self.max_tokens;
        wire = wire
            .with_capabilities(capabilities)
            .with_mode(self.mode.unwrap_or_default())
            .with_strict(self.strict.unwrap_or(true))
            .with_cache(self.cache)
            .with_stream(self.stream)
            .with_extra(self.extra.clone());
        if let Some(effort) = &self.effort {
            wire = wire.with_effort(effort);
        }
        Ok(match self.thinking {
            Some(thinking) => wire.with_thinking(thinking),
            None => wire,
        })
    }
}

fn default_url() -> String {
    DEFAULT_URL.to_owned()
}

fn default_key_env() -> String {
    DEFAULT_KEY_ENV.to_owned()
}

const fn yes() -> bool {
    true
}

/// Null says that no key is sent, which is different from leaving the field out.
fn null_is_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Option::<String>::deserialize(deserializer).map(Option::unwrap_or_default)
}
