use std::sync::LazyLock;

use formwork_core::Overrides;
use formwork_wire::Auth;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{AZURE, MaxTokensField};

/// The request header that carries the key.
///
/// ```
/// use formwork_openai::{AZURE, KeyHeader, preset};
///
/// assert_eq!(KeyHeader::ApiKey.auth(), AZURE);
/// assert_eq!(preset("groq").map(|groq| groq.key_header), Some(KeyHeader::Bearer));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KeyHeader {
    /// `Authorization: Bearer KEY`.
    #[default]
    Bearer,
    /// `api-key: KEY` (Azure).
    ApiKey,
}

impl KeyHeader {
    /// Returns the header in the form that a transport needs.
    pub const fn auth(self) -> Auth {
        match self {
            Self::Bearer => Auth::BEARER,
            Self::ApiKey => AZURE,
        }
    }
}

/// The evidence for the values of a [`Preset`].
///
/// ```
/// use formwork_openai::{Source, presets};
///
/// assert!(presets().iter().any(|preset| preset.source == Source::Documentation));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Tests against a running server.
    Measured,
    /// The vendor's documentation or the source code of its clients.
    Documentation,
    /// Neither of the two.
    Unverified,
}

/// The defaults of an [`OpenAiConfig`](crate::OpenAiConfig) for one vendor or server with the Chat Completions API.
///
/// A field that is `None` has the default of [`OpenAi`](crate::OpenAi). [`presets()`] returns all of them.
///
/// ```
/// use formwork_openai::{Preset, Source};
///
/// let azure: &Preset = formwork_openai::preset("azure").unwrap();
/// assert_eq!((azure.base_url.as_deref(), azure.source), (None, Source::Documentation));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// The name in configurations, for example `groq`.
    pub name: String,
    /// The base URL. `None`: every customer has a different one.
    pub base_url: Option<String>,
    /// The environment variable with the key. Empty: the server needs none.
    pub api_key_env: String,
    /// The identifier of one of the vendor's models, for messages. `None`: every customer or server has different ones.
    pub example: Option<String>,
    /// Whether the vendor serves the models of other vendors.
    #[serde(default)]
    pub is_host: bool,
    /// The request header that carries the key.
    #[serde(default)]
    pub key_header: KeyHeader,
    /// The supported dialects, strictest first.
    pub dialects: Option<Vec<String>>,
    /// The property of the request body that limits the tokens of the completion.
    #[serde(default)]
    pub max_tokens_field: MaxTokensField,
    /// Whether responses are streamed.
    pub stream: Option<bool>,
    /// Whether usage is requested in streams.
    pub stream_usage: Option<bool>,
    /// The `strict` property of schemas.
    pub strict: Option<bool>,
    /// Whether the vendor supports `strict` for some of its models only, so that facts about a model take precedence over
    /// [`strict`](Self::strict).
    #[serde(default)]
    pub strict_per_model: bool,
    /// Whether the server itself enforces schemas, for every model. Facts about a model at its vendor's own service then do not
    /// restrict the dialects.
    #[serde(default)]
    pub enforces_schemas: bool,
    /// Additional properties of the request body.
    #[serde(default)]
    pub extra: Map<String, Value>,
    /// Capabilities that differ from OpenAI's.
    #[serde(default)]
    pub capabilities: Overrides,
    /// The evidence for these values.
    pub source: Source,
    /// The date of the last check, as `YYYY-MM-DD`.
    pub checked: String,
    /// Notes for users of the preset.
    #[serde(default)]
    pub notes: String,
}

#[derive(Deserialize)]
struct File {
    preset: Vec<Preset>,
}

/// The presets of the embedded file. Parsing cannot fail at run time, because a test parses the same file.
static PRESETS: LazyLock<Vec<Preset>> =
    LazyLock::new(|| toml::from_str(TEXT).map(|file: File| file.preset).unwrap_or_default());

const TEXT: &str = include_str!("../presets.toml");

/// Returns all presets, sorted by name.
///
/// ```
/// let names: Vec<&str> = formwork_openai::presets().iter().map(|preset| preset.name.as_str()).collect();
/// assert!(names.contains(&"openai") && names.is_sorted());
/// ```
pub fn presets() -> &'static [Preset] {
    &PRESETS
}

/// Returns the preset called `name`, or `None` if there is none.
///
/// ```
/// let groq = formwork_openai::preset("groq").unwrap();
/// assert_eq!((groq.api_key_env.as_str(), groq.stream), ("GROQ_API_KEY", Some(false)));
/// ```
pub fn preset(name: &str) -> Option<&'static Preset> {
    presets().iter().find(|preset| preset.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_parses_and_they_are_sorted_and_unique() {
        let parsed: Result<File, _> = toml::from_str(TEXT);
        assert_eq!(
            parsed.map(|file| file.preset.len()).map_err(|error| error.to_string()),
            Ok(presets().len())
        );
        assert!(presets().len() > 15);
        assert!(presets().is_sorted_by(|one, next| one.name < next.name));
    }

    #[test]
    fn every_row_is_complete() {
        for preset in presets() {
            let name = &preset.name;
            let address = preset.base_url.as_deref();
            assert!(address.is_none_or(|url| url.starts_with("http") && !url.ends_with('/')), "{name}");
            assert!(address.is_some() || preset.notes.contains("base_url"), "{name}");
            assert!(preset.checked.len() == 10 && preset.checked.starts_with("20"), "{name}");
            let dialects = preset.dialects.as_deref().unwrap_or_default();
            assert!(dialects.is_empty() || dialects.last().is_some_and(|last| last == "prompt"), "{name}");
            // Keys are never sent over an unencrypted connection.
            assert!(
                address.is_none_or(|url| url.starts_with("https:") || url.contains("//localhost")),
                "{name}"
            );
        }
    }
}
