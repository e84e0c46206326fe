use std::collections::BTreeMap;

use formwork_core::{Error, ErrorKind, Overrides};
use formwork_wire::Auth;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::{Api, KeyHeader, MaxTokensField, OpenAi, Preset, SystemRole, preset, presets};

/// A provider that speaks Chat Completions or the Responses API, as data. Fields that are left out have the preset's value.
///
/// ```
/// use formwork_openai::Config;
///
/// let config: Config = serde_json::from_str(r#"{"model": "gpt-oss-20b", "preset": "groq", "strict": true}"#).unwrap();
/// let resolved = config.resolve()?;
/// assert_eq!(resolved.base_url, "https://api.groq.com/openai/v1");
/// assert_eq!(resolved.api_key_env.as_deref(), Some("GROQ_API_KEY"));
/// # Ok::<(), formwork_core::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The model, under the name that the server has for it.
    pub model: String,
    /// The vendor or server whose values the other fields have by default: `openai` unless it is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// The API that requests go to: `chat` (Chat Completions, the default) or `responses` (the Responses API).
    #[serde(default, skip_serializing_if = "is_default")]
    pub api: Api,
    /// The address below which `/chat/completions` and `/responses` are; of OpenAI `https://api.openai.com/v1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The environment variable with the key, of OpenAI `OPENAI_API_KEY`; empty or null to send none.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "null_is_empty")]
    pub api_key_env: Option<String>,
    /// The header that carries the key: `bearer` (the default) or `api-key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_header: Option<KeyHeader>,
    /// More headers of every request. Keys do not belong here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Whether answers are streamed; `true` unless the preset says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// Whether usage is asked for in a stream (`stream_options`); `true` unless the preset says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream_usage: Option<bool>,
    /// Whether schemas are to be enforced strictly; `true` unless the preset says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
    /// The dialects that the server takes, the strictest first; of OpenAI `openai`, `json-object`, `prompt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialects: Option<Vec<String>>,
    /// The member of the body that limits the tokens of an answer; of OpenAI `max_completion_tokens`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens_field: Option<MaxTokensField>,
    /// The name of the role of instructions; `system` by default.
    #[serde(default)]
    pub system_role: SystemRole,
    /// The query `api-version` of Azure's dated addresses; none by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// More members of the body. They win over the preset's, and over those that are sent otherwise.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
    /// The promises of this model that differ.
    #[serde(default)]
    pub capabilities: Overrides,
}

/// A [`Config`] with its preset: all that a provider is made from.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The preset's name, which is what the provider is called.
    pub name: String,
    /// The protocol.
    pub wire: OpenAi,
    /// The address, without a slash at its end.
    pub base_url: String,
    /// The environment variable with the key; `None` to send none.
    pub api_key_env: Option<String>,
    /// How the server is told the key.
    pub auth: Auth,
    /// More headers of every request.
    pub headers: BTreeMap<String, String>,
}

impl Config {
    /// Asks this model of OpenAI.
    pub fn new(model: impl Into<String>) -> Self {
        Self { model: model.into(), ..Self::default() }
    }

    /// Puts together what is set here and what the preset has.
    ///
    /// # Errors
    /// [`ErrorKind::Config`], if there is no such preset, the model is empty, the preset has no address and none is set, or
    /// `api_version` has characters that an address cannot have.
    pub fn resolve(&self) -> Result<Resolved, Error> {
        let preset = self.preset()?;
        if self.model.trim().is_empty() {
            return Err(config("`model` is empty"));
        }
        let base_url = self.base_url.as_ref().or(preset.base_url.as_ref());
        let base_url = base_url
            .ok_or_else(|| config(format!("`{}` needs a `base_url`: {}", preset.name, preset.notes)))?;
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
            config(format!("no preset `{name}`; there are: {}", names.join(", ")))
        })
    }

    fn wire(&self, preset: &Preset) -> Result<OpenAi, Error> {
        let mut extra = preset.extra.clone();
        extra.extend(self.extra.clone());
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
                return Err(config("`api_version` has letters, digits, dots and hyphens alone"));
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

/// Null says that there is none, which is another thing than leaving the field out.
fn null_is_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Option::<String>::deserialize(deserializer).map(|name| Some(name.unwrap_or_default()))
}
