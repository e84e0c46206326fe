use std::sync::LazyLock;

use formwork_core::Overrides;
use formwork_wire::Auth;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{AZURE, MaxTokensField};

/// The header that carries the key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KeyHeader {
    /// `Authorization: Bearer …`.
    #[default]
    Bearer,
    /// `api-key: …`, as Azure has it.
    ApiKey,
}

impl KeyHeader {
    /// The same for a transport.
    pub const fn auth(self) -> Auth {
        match self {
            Self::Bearer => Auth::BEARER,
            Self::ApiKey => AZURE,
        }
    }
}

/// The source of a [`Preset`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A running server.
    Measured,
    /// The vendor's documentation, or code of its clients.
    Documentation,
    /// Common knowledge alone.
    Unverified,
}

/// A vendor or server that speaks Chat Completions: the defaults of a [`Config`](crate::Config) for it. What is `None` has
/// the defaults of [`OpenAi`](crate::OpenAi).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// Its name.
    pub name: String,
    /// Its address; `None` where every customer has an own one.
    pub base_url: Option<String>,
    /// The environment variable with the key; empty where there is none.
    pub api_key_env: String,
    /// The header that carries the key.
    #[serde(default)]
    pub key_header: KeyHeader,
    /// The dialects that it takes, the strictest first.
    pub dialects: Option<Vec<String>>,
    /// The member of the body that limits the tokens of the answer.
    #[serde(default)]
    pub max_tokens_field: MaxTokensField,
    /// Whether a stream is asked for.
    pub stream: Option<bool>,
    /// Whether usage is asked for in a stream.
    pub stream_usage: Option<bool>,
    /// Whether schemas are to be enforced strictly.
    pub strict: Option<bool>,
    /// More members of the body.
    #[serde(default)]
    pub extra: Map<String, Value>,
    /// The promises that differ from OpenAI's.
    #[serde(default)]
    pub capabilities: Overrides,
    /// The source of all this.
    pub source: Source,
    /// The day on which it was looked at last, as `YYYY-MM-DD`.
    pub checked: String,
    /// Notes for its users.
    #[serde(default)]
    pub notes: String,
}

#[derive(Deserialize)]
struct File {
    preset: Vec<Preset>,
}

/// The file is part of the program, and a test parses it: it cannot be wrong here.
static PRESETS: LazyLock<Vec<Preset>> =
    LazyLock::new(|| toml::from_str(TEXT).map(|file: File| file.preset).unwrap_or_default());

const TEXT: &str = include_str!("../presets.toml");

/// Returns all presets by name.
pub fn presets() -> &'static [Preset] {
    &PRESETS
}

/// Returns the preset of this name.
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
            // A key never goes out over a connection that anyone can read.
            assert!(
                address.is_none_or(|url| url.starts_with("https:") || url.contains("//localhost")),
                "{name}"
            );
        }
    }
}
