//! The configuration section of a Gemini model.

use std::collections::BTreeMap;

use formwork_core::{Error, ErrorKind, Overrides};
use formwork_wire::Auth;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Gemini, ThinkingLevel};

/// The address of the Gemini API (AI Studio).
pub const DEFAULT_URL: &str = "https://generativelanguage.googleapis.com";

/// The environment variable from which Google's SDKs read the key of the Gemini API.
pub const DEFAULT_KEY_ENV: &str = "GEMINI_API_KEY";

/// The identifier of one of Google's models, for messages.
pub const EXAMPLE_MODEL: &str = "gemini-3.5-flash";

/// One of Google's two APIs for Gemini models.
///
/// ```
/// use formwork_gemini::{GeminiConfig, Preset};
///
/// let config: GeminiConfig = serde_json::from_str(r#"{"model": "gemini-3.5-flash", "preset": "vertex"}"#)?;
/// assert_eq!(config.preset, Preset::Vertex);
/// assert_eq!(GeminiConfig::default().preset, Preset::Gemini);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// The Gemini API of AI Studio. It requires an API key.
    #[default]
    Gemini,
    /// Vertex AI of Google Cloud. It requires an access token and `project`.
    Vertex,
}

/// The configuration of a Gemini model, at Google or behind a proxy.
///
/// ```
/// use formwork_gemini::GeminiConfig;
///
/// let config: GeminiConfig = serde_json::from_str(r#"{"model": "gemini-3.5-flash", "preset": "vertex", "project": "p-1"}"#).unwrap();
/// let resolved = config.resolve()?;
/// assert_eq!(resolved.base_url, "https://aiplatform.googleapis.com");
/// assert_eq!(resolved.api_key_env.as_deref(), Some("GOOGLE_OAUTH_ACCESS_TOKEN"));
/// # Ok::<(), formwork_core::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GeminiConfig {
    /// The model's identifier, for example `gemini-3.5-flash`.
    pub model: String,
    /// The API: `gemini` (AI Studio, the default) or `vertex`.
    #[serde(default)]
    pub preset: Preset,
    /// The server's address, to which `/v1beta/models/…` is appended, or `/v1/projects/…` with Vertex AI (default: Google's).
    pub base_url: Option<String>,
    /// The environment variable with the key (default: `GEMINI_API_KEY`, else `GOOGLE_API_KEY`; with Vertex AI the access token in
    /// `GOOGLE_OAUTH_ACCESS_TOKEN`). Empty: no key.
    pub api_key_env: Option<String>,
    /// The Google Cloud project for Vertex AI (default: the environment variable `GOOGLE_CLOUD_PROJECT`).
    pub project: Option<String>,
    /// The Google Cloud location for Vertex AI (default: the environment variable `GOOGLE_CLOUD_LOCATION`, else `global`).
    pub location: Option<String>,
    /// Headers of every request (default: none), without keys.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Whether responses are streamed (default: `true`).
    pub stream: Option<bool>,
    /// The dialects that calls may use, strictest first (default: those of `gemini`, `gemini-openapi`, `json-object` and
    /// `prompt` that the registry lists for the model).
    pub dialects: Option<Vec<String>>,
    /// The maximum number of thinking tokens of a model before Gemini 3 (default: the model's). 0 turns thinking off, -1 lets
    /// the model decide.
    pub thinking_budget: Option<i32>,
    /// The amount of reasoning of models from Gemini 3 on (default: the model's).
    pub thinking_level: Option<ThinkingLevel>,
    /// Whether responses include summaries of the model's thoughts (default: `false`).
    pub include_thoughts: Option<bool>,
    /// Additional properties of `generationConfig`, for example `topK`; those that the call sets take precedence.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub generation: Map<String, Value>,
    /// Additional properties of the request body, for example `safetySettings`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
    /// Capabilities of this model that differ from the known ones.
    #[serde(default)]
    pub capabilities: Overrides,
}

/// A [`GeminiConfig`] with the values of its preset filled in: everything that a provider is built from.
///
/// ```
/// use formwork_gemini::{GeminiConfig, Gemini};
///
/// let resolved = GeminiConfig { model: "gemini-3.5-flash".to_owned(), ..GeminiConfig::default() }.resolve()?;
/// assert_eq!(resolved.base_url, "https://generativelanguage.googleapis.com");
/// assert_eq!(resolved.auth, Gemini::AUTH);
/// # Ok::<(), formwork_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The codec.
    pub wire: Gemini,
    /// The server's address without a trailing slash.
    pub base_url: String,
    /// The environment variable with the key. `None`: no key is sent.
    pub api_key_env: Option<String>,
    /// The request header that carries the key.
    pub auth: Auth,
}

impl GeminiConfig {
    /// Returns the configuration of `model` at the Gemini API, with all other fields at their defaults.
    pub fn new(model: impl Into<String>) -> Self {
        Self { model: model.into(), ..Self::default() }
    }

    /// Fills in the values of the preset for fields that are not set.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the model is empty, if `capabilities` has `late_system`, if Vertex AI has no project, or if model,
    /// project or location contain `..` or characters other than letters, digits and `-._/@:`.
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
            .with_generation(self.generation.clone())
            .with_extra(self.extra.clone());
        wire.thinking.budget = self.thinking_budget;
        wire.thinking.level = self.thinking_level;
        wire.thinking.include = self.include_thoughts;
        if let Some(dialects) = &self.dialects {
            wire = wire.with_dialects(dialects);
        }
        wire.capabilities = self.capabilities.apply(wire.capabilities);
        let (wire, usual_url, usual_key, auth) = match self.preset {
            Preset::Gemini => (wire, DEFAULT_URL.to_owned(), DEFAULT_KEY_ENV, Gemini::AUTH),
            Preset::Vertex => {
                let missing = "Vertex AI requires a project: set `project` or the environment variable GOOGLE_CLOUD_PROJECT";
                let project = self.project.as_deref().ok_or_else(|| config(missing))?;
                let location = self.location.as_deref().unwrap_or("global");
                checked("project", project)?;
                // The location is part of the host's name, so that it must not choose another host.
                if !location.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-') {
                    return Err(config("`location` contains a character other than letters, digits and `-`"));
                }
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

/// Checks that a field can be part of a URL path.
fn checked(field: &str, text: &str) -> Result<(), Error> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-._/@:".contains(letter);
    if text.chars().all(is_plain) && !text.contains("..") {
        return Ok(());
    }
    Err(config(format!("`{field}` contains `..` or a character other than letters, digits and `-._/@:`")))
}

fn config(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Config, message)
}
