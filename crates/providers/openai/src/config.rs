use std::collections::BTreeMap;

use formwork_core::{Error, ErrorKind, Overrides};
use formwork_wire::Auth;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Api, KeyHeader, MaxTokensField, OpenAi, Preset, SystemRole, preset, presets};

/// The configuration of a model behind Chat Completions or the Responses API. A missing field has the preset's value.
///
/// ```
/// use formwork_openai::OpenAiConfig;
///
/// let config: OpenAiConfig = serde_json::from_str(r#"{"model": "gpt-oss-20b", "preset": "groq", "strict": true}"#).unwrap();
/// let resolved = config.resolve()?;
/// assert_eq!(resolved.base_url, "https://api.groq.com/openai/v1");
/// assert_eq!(resolved.api_key_env.as_deref(), Some("GROQ_API_KEY"));
/// # Ok::<(), formwork_core::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenAiConfig {
    /// The model's name on the server.
    pub model: String,
    /// The vendor or server that provides the defaults of the other fields (default: `openai`).
    pub preset: Option<String>,
    /// The API: `chat` (Chat Completions, the default) or `responses` (the Responses API).
    #[serde(default, skip_serializing_if = "is_default")]
    pub api: Api,
    /// The base URL, to which `/chat/completions` or `/responses` is appended (default of `openai`:
    /// `https://api.openai.com/v1`).
    pub base_url: Option<String>,
    /// The environment variable with the key (default of `openai`: `OPENAI_API_KEY`). Empty: no key is sent.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "formwork_wire::null_is_empty"
    )]
    pub api_key_env: Option<String>,
    /// The request header that carries the key: `bearer` (the default) or `api-key`.
    pub key_header: Option<KeyHeader>,
    /// Headers of every request (default: none), without keys.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Whether responses are streamed (default: the preset's value, else `true`).
    pub stream: Option<bool>,
    /// Whether usage is requested in streams with `stream_options` (default: the preset's value, else `true`).
    pub stream_usage: Option<bool>,
    /// The `strict` property of schemas (default: the preset's value, else `true`).
    pub strict: Option<bool>,
    /// The dialects that calls may use, strictest first (default of `openai`: `openai`, `json-object`, `prompt`).
    pub dialects: Option<Vec<String>>,
    /// The property that limits the tokens of the completion (default of `openai`: `max_completion_tokens`).
    pub max_tokens_field: Option<MaxTokensField>,
    /// The role of instructions: `system` (the default) or `developer`.
    #[serde(default)]
    pub system_role: SystemRole,
    /// The query parameter `api-version` of Azure's dated API versions (default: none).
    pub api_version: Option<String>,
    /// Additional properties of the request body. They are merged into
    /// it and into the preset's: objects member by member, other values replace.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
    /// Capabilities of this model that differ from the known ones.
    #[serde(default)]
    pub capabilities: Overrides,
}

/// An [`OpenAiConfig`] with the values of its preset filled in: everything that a provider is built from.
///
/// ```
/// use formwork_openai::OpenAiConfig;
///
/// let resolved = OpenAiConfig::new("gpt-5.6").resolve()?;
/// assert_eq!((resolved.name.as_str(), resolved.base_url.as_str()), ("openai", "https://api.openai.com/v1"));
/// assert_eq!(resolved.api_key_env.as_deref(), Some("OPENAI_API_KEY"));
/// # Ok::<(), formwork_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The name of the preset, which is also the name of the provider.
    pub name: String,
    /// The codec.
    pub wire: OpenAi,
    /// The base URL without a trailing slash.
    pub base_url: String,
    /// The environment variable with the key. `None`: no key is sent.
    pub api_key_env: Option<String>,
    /// The request header that carries the key.
    pub auth: Auth,
    /// Additional headers of every request.
    pub headers: BTreeMap<String, String>,
}

impl OpenAiConfig {
    /// Returns the configuration of `model` at OpenAI, with all other fields at their defaults.
    pub fn new(model: impl Into<String>) -> Self {
        Self { model: model.into(), ..Self::default() }
    }

    /// Fills in the values of the preset for fields that are not set.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the preset does not exist, if the model is empty, if neither the preset nor this configuration
    /// has a base URL, or if `api_version` contains characters other than letters, digits and `-._`.
    pub fn resolve(&self) -> Result<Resolved, Error> {
        let preset = self.preset()?;
        if self.model.trim().is_empty() {
            return Err(config("`model` is empty"));
        }
        let base_url = self.base_url.as_ref().or(preset.base_url.as_ref());
        let base_url = base_url.ok_or_else(|| {
            config(format!("the preset `{}` requires a `base_url`: {}", preset.name, preset.notes))
        })?;
        let api_key_env = self.api_key_env.as_ref().unwrap_or(&preset.api_key_env);
        Ok(Resolved {
            name: preset.name.clone(),
            wire: self.wire(preset)?,
            base_url: base_url.trim_end_matches('/').to_owned(),
            api_key_env: Some(api_key_env.clone()).filter(|name| !name.is_empty()),
            auth: self.key_header.unwrap_or(preset.key_header).auth(),
            headers: self.headers.clone(),
        })
    }

    fn preset(&self) -> Result<&'static Preset, Error> {
        let name = self.preset.as_deref().unwrap_or("openai");
        preset(name).ok_or_else(|| {
            let names: Vec<&str> = presets().iter().map(|preset| preset.name.as_str()).collect();
            config(format!("the preset `{name}` does not exist; the presets are: {}", names.join(", ")))
        })
    }

    fn wire(&self, preset: &Preset) -> Result<OpenAi, Error> {
        let mut extra = preset.extra.clone();
        formwork_wire::merge(&mut extra, &self.extra);
        let mut wire = OpenAi::new(&self.model)
            .with_stream(self.stream.or(preset.stream).unwrap_or(true))
            .with_stream_usage(self.stream_usage.or(preset.stream_usage).unwrap_or(true))
            .with_strict(self.strict.or(preset.strict).unwrap_or(true))
            .with_max_tokens_field(self.max_tokens_field.unwrap_or(preset.max_tokens_field))
            .with_system_role(self.system_role)
            .with_extra(extra);
        if let Some(dialects) = self.dialects.as_ref().or(preset.dialects.as_ref()) {
            wire = wire.with_dialects(dialects);
        }
        if let Some(version) = &self.api_version {
            let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.' | '_');
            if !version.chars().all(is_plain) {
                return Err(config(
                    "`api_version` contains a character other than letters, digits and `-._`",
                ));
            }
            wire = wire.with_api_version(version);
        }
        let capabilities = self.capabilities.apply(preset.capabilities.apply(wire.capabilities.clone()));
        Ok(wire.with_capabilities(capabilities).with_api(self.api))
    }
}

fn config(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Config, message)
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
