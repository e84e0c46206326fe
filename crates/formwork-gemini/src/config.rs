//! The section of a configuration file about a Gemini model.

use std::collections::BTreeMap;

use formwork_core::{Error, ErrorKind, Overrides};
use formwork_wire::Auth;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Gemini, ThinkingLevel};

/// The address of the Gemini API (AI Studio).
pub const DEFAULT_URL: &str = "https://generativelanguage.googleapis.com";

/// The API of Google that is called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// The Gemini API of AI Studio, with an API key.
    #[default]
    Gemini,
    /// Vertex AI of Google Cloud, with an access token; it needs `project`.
    Vertex,
}

/// A Gemini model, at Google or behind a proxy.
///
/// ```
/// use formwork_gemini::Config;
///
/// let config: Config = serde_json::from_str(r#"{"model": "gemini-2.5-flash", "preset": "vertex", "project": "p-1"}"#).unwrap();
/// let resolved = config.resolve()?;
/// assert_eq!(resolved.base_url, "https://aiplatform.googleapis.com");
/// assert_eq!(resolved.api_key_env.as_deref(), Some("GOOGLE_OAUTH_ACCESS_TOKEN"));
/// # Ok::<(), formwork_core::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "GeminiConfig")]
pub struct Config {
    /// The model: `gemini-2.5-flash`.
    pub model: String,
    /// The API: `gemini` (the default, AI Studio) or `vertex`.
    #[serde(default)]
    pub preset: Preset,
    /// The address below which `/v1beta/models/…` is, or `/v1/projects/…` with Vertex AI (default: Google's).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The environment variable with the key (default: `GEMINI_API_KEY`, else `GOOGLE_API_KEY`; with Vertex AI
    /// `GOOGLE_OAUTH_ACCESS_TOKEN`, which holds what `gcloud auth print-access-token` prints, for an hour); empty to send
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// The project of Google Cloud, for Vertex AI (default: the environment variable `GOOGLE_CLOUD_PROJECT`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The location of Google Cloud, for Vertex AI (default: the environment variable `GOOGLE_CLOUD_LOCATION`, else `global`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// Headers that are sent with every request. Keys do not belong here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Whether answers are streamed (default: `true`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// The dialects that the model is asked in, the strictest first (default: `gemini`, `gemini-openapi`, `json-object`,
    /// `prompt`, as far as the registry knows the model to take them).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialects: Option<Vec<String>>,
    /// The most tokens that a model before Gemini 3 thinks with: 0 for none, -1 for as many as it likes (default: the
    /// model's).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_budget: Option<i32>,
    /// How much a model from Gemini 3 on thinks (default: the model's).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<ThinkingLevel>,
    /// Whether summaries of the thoughts come with the answer (default: no).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_thoughts: Option<bool>,
    /// Further members of `generationConfig`: `topK`, `stopSequences`, … What a call sets goes before them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub generation: Map<String, Value>,
    /// The promises of this model that differ.
    #[serde(default)]
    pub capabilities: Overrides,
}

/// A [`Config`] with the values of its preset: all that a provider is made from.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The protocol.
    pub wire: Gemini,
    /// The address, without a slash at its end.
    pub base_url: String,
    /// The environment variable with the key; `None` to send none.
    pub api_key_env: Option<String>,
    /// The header that carries the key.
    pub auth: Auth,
}

impl Config {
    /// Asks this model of the Gemini API.
    pub fn new(model: impl Into<String>) -> Self {
        Self { model: model.into(), ..Self::default() }
    }

    /// Puts together what is set here and what the preset has.
    ///
    /// # Errors
    /// [`ErrorKind::Config`], if the model is empty, `capabilities` has `late_system`, Vertex AI is called without a project, or model, project or location have
    /// characters that an address cannot have.
    pub fn resolve(&self) -> Result<Resolved, Error> {
        if self.model.trim().is_empty() {
            return Err(config("`model` is empty"));
        }
        checked("model", &self.model)?;
        if self.capabilities.late_system.is_some() {
            return Err(config(
                "`late_system` has no effect: the API takes system messages apart from the dialogue",
            ));
        }
        let mut wire = Gemini::new(&self.model)
            .with_stream(self.stream.unwrap_or(true))
            .with_generation(self.generation.clone());
        wire.thinking.budget = self.thinking_budget;
        wire.thinking.level = self.thinking_level;
        wire.thinking.include = self.include_thoughts;
        if let Some(dialects) = &self.dialects {
            wire = wire.with_dialects(dialects);
        }
        wire.capabilities = self.capabilities.apply(wire.capabilities);
        let (wire, usual_url, usual_key, auth) = match self.preset {
            Preset::Gemini => (wire, DEFAULT_URL.to_owned(), "GEMINI_API_KEY", Gemini::AUTH),
            Preset::Vertex => {
                let missing = "Vertex AI needs `project`, or the environment variable GOOGLE_CLOUD_PROJECT";
                let project = self.project.as_deref().ok_or_else(|| config(missing))?;
                let location = self.location.as_deref().unwrap_or("global");
                checked("project", project)?;
                checked("location", location)?;
                let url = match location {
                    "global" => "https://aiplatform.googleapis.com".to_owned(),
                    location => format!("https://{location}-aiplatform.googleapis.com"),
                };
                (wire.with_vertex(project, location), url, "GOOGLE_OAUTH_ACCESS_TOKEN", Auth::BEARER)
            }
        };
        let base_url = self.base_url.clone().unwrap_or(usual_url);
        let api_key_env = self.api_key_env.as_deref().unwrap_or(usual_key);
        Ok(Resolved {
            wire,
            base_url: base_url.trim_end_matches('/').to_owned(),
            api_key_env: Some(api_key_env.to_owned()).filter(|name| !name.is_empty()),
            auth,
        })
    }
}

/// Checks a part of a path.
fn checked(field: &str, text: &str) -> Result<(), Error> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-._/@:".contains(letter);
    if text.chars().all(is_plain) && !text.contains("..") {
        return Ok(());
    }
    Err(config(format!("`{field}` has letters, digits and the signs `-._/@:` alone")))
}

fn config(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Config, message)
}
