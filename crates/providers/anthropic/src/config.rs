//! The configuration section of a Claude model.

use std::collections::BTreeMap;

use formwork_wire::Auth;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{API_KEY, Anthropic, Mode, Thinking};

/// The address of Anthropic's API.
pub const DEFAULT_URL: &str = "https://api.anthropic.com";

/// The environment variable from which Anthropic's SDKs read the key.
pub const DEFAULT_KEY_ENV: &str = "ANTHROPIC_API_KEY";

/// The identifier of one of Anthropic's models, for messages.
pub const EXAMPLE_MODEL: &str = "claude-sonnet-4-6";

/// The configuration of a Claude model behind the Messages API.
///
/// ```
/// use formwork_anthropic::{AnthropicConfig, Thinking};
///
/// let config: AnthropicConfig =
///     serde_json::from_str(r#"{"model": "claude-sonnet-4-6", "thinking": {"budget_tokens": 2048}}"#).unwrap();
/// assert_eq!(config.base_url(), "https://api.anthropic.com");
/// assert_eq!(config.thinking, Some(Thinking::Budget { budget_tokens: 2048 }));
/// assert_eq!(config.wire()?.model(), "claude-sonnet-4-6");
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnthropicConfig {
    /// The model's identifier, for example `claude-sonnet-4-6`.
    pub model: String,
    /// The Google Cloud project, for Vertex AI (default: none).
    pub project: Option<String>,
    /// The location on Vertex AI (default: `global`).
    pub location: Option<String>,
    /// The server's address (default: the vendor's). A trailing `/v1` is removed.
    #[serde(default = "default_url")]
    pub base_url: String,
    /// The environment variable with the key (default: `ANTHROPIC_API_KEY`). Empty: no key is sent.
    #[serde(default = "default_key_env", deserialize_with = "formwork_wire::null_is_empty")]
    pub api_key_env: String,
    /// Headers of every request, for example `anthropic-beta` (default: none). Keys belong in `api_key_env`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The API feature that enforces schemas. Default: the registry's value for the model, else `schema`.
    pub mode: Option<Mode>,
    /// Whether the forced tool is strict. Default: the registry's value for the model, else `true`.
    pub strict: Option<bool>,
    /// Whether the model thinks before it answers: `off`, `adaptive`, or `{ budget_tokens = 2048 }` (at least 1024). Default: not
    /// sent.
    pub thinking: Option<Thinking>,
    /// The `effort` parameter: `low`, `medium`, `high`, and further values for some models. Default: not sent.
    pub effort: Option<String>,
    /// Whether the system prompt is marked for prompt caching (default: `true`).
    #[serde(default = "formwork_wire::yes")]
    pub cache: bool,
    /// The `max_tokens` of calls without a limit of their own. Default: the model's output limit, else 8192.
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u32>,
    /// Whether the model accepts a temperature. Default: the registry's value for the model, else `false`.
    pub temperature: Option<bool>,
    /// Whether the model continues a last message of the assistant (default: the registry's value for the model, else `false`). Off
    /// while the model thinks.
    pub prefill: Option<bool>,
    /// Whether responses are streamed (default: `true`).
    #[serde(default = "formwork_wire::yes")]
    pub stream: bool,
    /// Additional properties of the request body, for example `metadata`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

impl AnthropicConfig {
    /// Returns the configuration of `model` at Anthropic, with all other fields at their defaults.
    pub fn new(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            project: None,
            location: None,
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
            prefill: None,
            stream: true,
            extra: Map::new(),
        }
    }

    /// Returns the address to which `/v1/messages` is appended. A trailing `/v1` is removed, because the base URLs of other
    /// clients include it.
    ///
    /// The default with a `project` is the address of Vertex AI in `location`.
    pub fn base_url(&self) -> String {
        let url = self.base_url.trim_end_matches('/');
        match (&self.project, self.location.as_deref().unwrap_or("global")) {
            (Some(_), "global") if url == DEFAULT_URL => "https://aiplatform.googleapis.com".to_owned(),
            (Some(_), location) if url == DEFAULT_URL => {
                format!("https://{location}-aiplatform.googleapis.com")
            }
            _ => url.strip_suffix("/v1").unwrap_or(url).trim_end_matches('/').to_owned(),
        }
    }

    /// Returns the header of the key: `x-api-key`, or that of Google's access tokens with a `project`.
    pub const fn auth(&self) -> Auth {
        if self.project.is_some() { Auth::BEARER } else { API_KEY }
    }

    /// Returns the name of the environment variable with the key, or `None` if no key is sent.
    pub fn key_env(&self) -> Option<&str> {
        if self.project.is_some() && self.api_key_env == DEFAULT_KEY_ENV {
            return Some("GOOGLE_OAUTH_ACCESS_TOKEN");
        }
        Some(self.api_key_env.as_str()).filter(|name| !name.is_empty())
    }

    /// Returns the codec with the settings of this configuration.
    ///
    /// # Errors
    /// A one-line message about a setting that the API would refuse: an empty model, a thinking budget below 1024 tokens or
    /// not below `max_tokens`, or a forced tool while thinking is on.
    pub fn wire(&self) -> Result<Anthropic, String> {
        /// The minimum thinking budget of the API.
        const MIN_BUDGET: u32 = 1024;

        if self.model.trim().is_empty() {
            return Err("`model` is empty".to_owned());
        }
        if let Some(Thinking::Budget { budget_tokens }) = self.thinking {
            if budget_tokens < MIN_BUDGET {
                return Err(format!(
                    "`thinking.budget_tokens` is {budget_tokens}, and the minimum is {MIN_BUDGET}"
                ));
            }
            if self.max_tokens.is_some_and(|max| max <= budget_tokens) {
                return Err("`thinking.budget_tokens` must be less than `max_tokens`".to_owned());
            }
        }
        if self.mode == Some(Mode::Tool) && self.thinking.is_some_and(Thinking::is_on) {
            return Err("a model cannot be forced to call a tool while it thinks: remove `mode = \"tool\"` or set `thinking = \"off\"`".to_owned());
        }
        let mut wire = Anthropic::new(&self.model);
        if let Some(project) = &self.project {
            let location = self.location.as_deref().unwrap_or("global");
            let is_plain = |text: &str, more: &str| {
                !text.is_empty() && text.chars().all(|one| one.is_ascii_alphanumeric() || more.contains(one))
            };
            // The location is part of the host's name, so that it must not choose another host.
            let of_path = [
                ("project", project.as_str(), "-.:"),
                ("location", location, "-"),
                ("model", &self.model, "-.@"),
            ];
            if let Some((name, ..)) = of_path.iter().find(|(_, text, more)| !is_plain(text, more)) {
                return Err(format!("`{name}` contains a character that no {name} of Vertex AI has"));
            }
            wire = wire.with_vertex(project, location);
        }
        let mut capabilities = wire.capabilities.clone();
        capabilities.temperature = self.temperature.unwrap_or(false);
        capabilities.default_max_tokens = self.max_tokens;
        capabilities.prefill = self.prefill.unwrap_or(false);
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
