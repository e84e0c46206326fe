//! Models as data: facts about models by their names, with sources.
//!
//! The rows of `registry/models.toml` are part of the program. A file in the same format can add or replace rows.
//!
//! ```
//! use formwork_dialect::registry::{NativeMode, Registry};
//!
//! let mine = "[[model]]\nmatch = \"our-*\"\nfamily = \"Ours\"\nprovider = \"vllm\"\nnative = \"schema\"\n\
//!     dialect = \"llguidance\"\nsource = \"we run it\"\nchecked = \"2026-11-21\"\n";
//! let models = Registry::embedded().overlaid_with(Registry::from_toml(mine)?);
//! assert_eq!(models.capabilities("our-7b").dialects, ["llguidance", "prompt"]);
//! assert_eq!(models.lookup("openai/gpt-4o").unwrap().native, NativeMode::Schema);
//! // Without a row, a model is only prompted.
//! assert_eq!(models.capabilities("theirs").dialects, ["prompt"]);
//! # Ok::<(), formwork_dialect::registry::RegistryError>(())
//! ```

mod date;
mod entry;
mod error;
mod parse;
mod pattern;
mod patterns;
mod prices;

use std::sync::LazyLock;

use formwork_core::{Capabilities, Enforcement};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Dialects;

pub use date::Date;
pub use entry::{Entry, Limits, NativeMode, Reasoning, Temperature};
pub use error::RegistryError;
pub use pattern::Pattern;
pub use patterns::Patterns;
pub use prices::known_price;

/// The file is in the crate's own folder, so that the packaged crate contains it.
const TEXT: &str = include_str!("../../registry/models.toml");

/// A test parses the file, so it is always valid here.
static EMBEDDED: LazyLock<Registry> = LazyLock::new(|| Registry::from_toml(TEXT).unwrap_or_default());

/// The facts about models, in order of precedence.
///
/// The first row that matches a name counts, so specific rows precede general ones. A few rows of a user's file can
/// therefore take precedence over all others, unlike with the longest match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Registry {
    #[serde(default, rename = "model")]
    entries: Vec<Entry>,
}

impl Registry {
    /// Returns the registry of this version of the crate.
    pub fn embedded() -> &'static Self {
        &EMBEDDED
    }

    /// Parses the rows of a TOML file: a `[[model]]` for each, with the fields of [`Entry`].
    ///
    /// # Errors
    ///
    /// [`RegistryError`] with the location: the text is not TOML, a key is unknown (with the most similar one), a value
    /// has the wrong type, or a dialect is unknown. Rows that shadow each other are not an error.
    pub fn from_toml(text: &str) -> Result<Self, RegistryError> {
        Self::from_toml_with(text, &Dialects::builtin())
    }

    /// Parses the rows of a TOML file, whose `dialect` can be any of these dialects.
    ///
    /// # Errors
    ///
    /// The errors of [`from_toml`](Self::from_toml).
    pub fn from_toml_with(text: &str, dialects: &Dialects) -> Result<Self, RegistryError> {
        Ok(Self { entries: parse::parse(text, dialects)? })
    }

    /// Returns a registry with the rows of `first`, then these.
    #[must_use]
    pub fn overlaid_with(&self, first: Self) -> Self {
        let mut entries = first.entries;
        entries.extend_from_slice(&self.entries);
        Self { entries }
    }

    /// Returns all rows, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the first row for a model. The name can start with hosts and vendors, as in `openrouter/openai/gpt-4o`.
    ///
    /// If a name has other features on another host, put the host in front: `groq/openai/gpt-oss-20b`,
    /// `ollama/llama3.1`. A row describes its vendor's own API; another host may support less.
    pub fn lookup(&self, model: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.patterns.matches(model))
    }

    /// Returns whether a row marks a model as tiny. Any matching row counts, whatever row the host in front has,
    /// because the host does not change how a model writes.
    ///
    /// ```
    /// use formwork_dialect::registry::Registry;
    ///
    /// let models = Registry::embedded();
    /// assert!(models.is_tiny("smollm2:135m") && models.is_tiny("ollama/SmolLM2-360M-Instruct-Q8_0.gguf"));
    /// assert!(!models.is_tiny("smollm2:1.7b") && !models.is_tiny("gpt-4o"));
    /// ```
    pub fn is_tiny(&self, model: &str) -> bool {
        self.entries.iter().any(|entry| entry.tiny && entry.patterns.matches(model))
    }

    /// Returns the capabilities of a model: those of its row, otherwise those of an [unknown](Self::unknown) one.
    pub fn capabilities(&self, model: &str) -> Capabilities {
        self.lookup(model).map_or_else(Self::unknown, Entry::capabilities)
    }

    /// Returns the capabilities of a model without a row: it can be prompted, and its answers are validated like any
    /// other.
    ///
    /// There is neither temperature nor seed, because every server accepts a request without them. For a protocol with
    /// native enforcement, insert its dialect before `prompt` to try it first: a rejected schema costs one call.
    ///
    /// ```
    /// use formwork_core::Enforcement;
    /// use formwork_dialect::registry::Registry;
    ///
    /// let mut unknown = Registry::unknown();
    /// assert!(unknown.enforcement == Enforcement::None && !unknown.temperature);
    /// unknown.enforcement = Enforcement::Schema;
    /// unknown.dialects.insert(0, "openai".to_owned());
    /// ```
    pub fn unknown() -> Capabilities {
        Capabilities::new(Enforcement::None).with_dialect("prompt")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str) -> Date {
        text.parse().unwrap()
    }

    fn row(model: &str) -> &'static Entry {
        Registry::embedded().lookup(model).unwrap_or_else(|| panic!("{model}"))
    }

    #[test]
    fn the_embedded_file_is_right() {
        let parsed = Registry::from_toml(TEXT).map_err(|error| error.to_string());
        assert_eq!(parsed.as_ref(), Ok(Registry::embedded()));
        assert!(Registry::embedded().entries().len() > 40);
        for entry in Registry::embedded().entries() {
            for pattern in entry.patterns.iter() {
                assert_eq!(row(pattern.as_str()), entry, "{pattern}");
            }
            let modes = crate::modes(&entry.capabilities());
            assert_eq!(modes.last().map(|mode| mode.name().to_owned()).as_deref(), Some("prompt"));
            assert!(
                entry.context_tokens.is_none() || entry.output_tokens <= entry.context_tokens,
                "{}",
                entry.patterns
            );
            assert!(
                entry.input_tokens.is_none() || entry.input_tokens < entry.context_tokens,
                "{}",
                entry.patterns
            );
        }
    }

    #[test]
    fn what_is_read_is_what_is_written() {
        let written = serde_json::to_value(Registry::embedded()).unwrap();
        assert_eq!(serde_json::from_value::<Registry>(written.clone()).unwrap(), *Registry::embedded());
        let schema = serde_json::to_value(schemars::schema_for!(Registry)).unwrap();
        let schema = formwork_schema::compile(&schema).unwrap();
        assert!(schema.is_valid(&written));
        let misspelt = serde_json::json!({"model": [{"matches": "a"}]});
        assert!(!schema.is_valid(&misspelt) && serde_json::from_value::<Registry>(misspelt).is_err());
    }

    /// The six rows of the agent layer's document, with its recommended uses.
    #[test]
    fn the_agent_layers_matrix() {
        for (model, family, recommended, retired) in [
            ("claude-sonnet-4-5", "Claude Sonnet 4.5", "Primary generation model", false),
            ("claude-opus-4-20250514", "Claude Opus 4", "High-quality review/evaluation", true),
            ("gpt-4o", "GPT-4o", "Alternative generation", false),
            ("gpt-4o-mini", "GPT-4o-mini", "High-volume, cost-sensitive", false),
            ("gemini-2.0-flash", "Gemini 2.0+", "Google ecosystem", true),
            ("gemini-1.5-pro", "Gemini 1.5", "Legacy support", true),
        ] {
            let row = row(model);
            let found = (row.family.as_str(), row.recommended_use.as_deref(), row.retired);
            assert_eq!(found, (family, Some(recommended), retired));
        }
        assert_eq!(row("gemini-3.8-flash").recommended_use.as_deref(), Some("Google ecosystem"));
        assert_eq!(row("claude-sonnet-4-5-20250929").retires, Some(date("2026-11-30")));
    }

    #[test]
    fn families_have_their_own_rows() {
        for (model, native, temperature) in [
            ("gpt-4o-2024-05-13", NativeMode::Object, true),
            ("gpt-4o-2024-11-20", NativeMode::Schema, true),
            ("o3", NativeMode::Schema, false),
            ("gpt-5-mini", NativeMode::Schema, false),
            ("gpt-5.2-chat-latest", NativeMode::Schema, false),
            ("gpt-5.4-mini", NativeMode::Schema, true),
            ("gpt-5.6-luna", NativeMode::Schema, false),
            ("claude-opus-4-6", NativeMode::Schema, true),
            ("claude-opus-4-7-20260416", NativeMode::Schema, false),
            ("anthropic/claude-fable-5", NativeMode::Schema, false),
            ("gemini-2.5-flash-lite", NativeMode::Schema, true),
            ("gemini-3.6-flash", NativeMode::Schema, false),
            ("gemini-2.5-flash-image", NativeMode::None, false),
            ("groq/openai/gpt-oss-20b", NativeMode::Schema, true),
            ("groq/qwen/qwen3.8-27b", NativeMode::Object, true),
            ("deepseek-v4-flash", NativeMode::Tool, false),
            ("ollama/qwen3:8b", NativeMode::Schema, true),
            ("ollama/gpt-oss:20b-cloud", NativeMode::None, true),
            ("ollama/minimax-m2:cloud", NativeMode::None, true),
            ("llama-server/anything", NativeMode::Schema, true),
            ("grok-4.6", NativeMode::Schema, true),
            ("mistral-large-latest", NativeMode::Schema, true),
        ] {
            let row = row(model);
            assert_eq!((row.native, row.capabilities().temperature), (native, temperature), "{model}");
        }
        for unknown in ["starling-7b", "gpt-9", "gpt-4o-transcribe", "my-gpt-4o", "mistral-small:24b", ""] {
            assert_eq!(Registry::embedded().lookup(unknown), None);
            assert_eq!(Registry::embedded().capabilities(unknown), Registry::unknown());
        }
    }

    #[test]
    fn a_row_promises_what_it_says() {
        let text = "[[model]]\nmatch = \"m\"\nfamily = \"M\"\nprovider = \"p\"\nsource = \"s\"\nchecked = \"2026-11-21\"\n";
        let row = |more: &str| Registry::from_toml(&format!("{text}{more}")).unwrap().capabilities("m");
        let dialects = |more: &str| row(more).dialects;
        assert_eq!(
            dialects("native = \"schema\"\ndialect = \"openai\"\njson_object = true"),
            ["openai", "json-object", "prompt"]
        );
        assert_eq!(dialects("native = \"schema\"\ndialect = \"ollama\""), ["ollama", "prompt"]);
        assert_eq!(dialects("native = \"schema\""), ["prompt"]);
        assert_eq!(dialects("native = \"tool\"\njson_object = true"), ["json-object", "prompt"]);
        assert_eq!(dialects("native = \"object\""), ["json-object", "prompt"]);
        assert_eq!(dialects("native = \"none\""), ["prompt"]);
        assert_eq!(row("native = \"none\""), Registry::unknown());
        assert_eq!(row("native = \"tool\"").enforcement, Enforcement::Tool);
        let all = row(
            "native = \"object\"\ntemperature = \"yes\"\ntop_p = true\nseed = true\nlate_system = true\n\
            context_tokens = 9\noutput_tokens = 8",
        );
        let expected = Capabilities::new(Enforcement::JsonObject)
            .with_dialect("json-object")
            .with_dialect("prompt")
            .with_temperature()
            .with_top_p()
            .with_seed()
            .with_late_system()
            .with_context_tokens(9)
            .with_output_tokens(8);
        assert_eq!(all, expected);
        for (reasoning, promised) in
            [("none", false), ("optional", true), ("by_default", false), ("always", false)]
        {
            let effort = "native = \"none\"\ntemperature = \"when_effort_none\"\ntop_p = true\nreasoning = ";
            let found = row(&format!("{effort}\"{reasoning}\""));
            assert_eq!((found.temperature, found.top_p), (promised, promised), "{reasoning}");
        }
    }

    #[test]
    fn the_users_rows_go_first() {
        let mine = "[[model]]\nmatch = [\"gpt-4o\", \"*-mine\"]\nfamily = \"Mine\"\nprovider = \"p\"\n\
            native = \"none\"\nsource = \"s\"\nchecked = \"2026-11-21\"\n";
        let models = Registry::embedded().overlaid_with(Registry::from_toml(mine).unwrap());
        assert_eq!(models.entries().len(), Registry::embedded().entries().len() + 1);
        assert_eq!(models.lookup("gpt-4o").unwrap().family, "Mine");
        assert_eq!(models.lookup("gpt-4o-mini").unwrap().family, "GPT-4o-mini");
        assert_eq!(models.lookup("x/y-mine").unwrap().patterns.to_string(), "gpt-4o, *-mine");
    }

    #[test]
    fn retirement_is_a_mark_or_a_day() {
        let sonnet = row("claude-sonnet-4-5");
        assert!(!sonnet.is_retired(date("2026-11-30")) && sonnet.is_retired(date("2026-12-01")));
        assert!(row("gemini-1.5-flash").is_retired(date("2000-01-01")));
        assert!(!row("gpt-4o").is_retired(date("2026-11-21")));
    }
}
