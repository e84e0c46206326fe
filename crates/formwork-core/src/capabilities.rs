use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far a provider makes a model keep to a schema. Ordered: a later one enforces more.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Enforcement {
    /// The schema stands in the prompt, if anywhere.
    #[default]
    None,
    /// The answer is some JSON object.
    JsonObject,
    /// The answer is the arguments of a tool with this schema, not enforced while decoding.
    Tool,
    /// Decoding is constrained to the schema.
    Schema,
}

/// The promises of a provider. The conformance suite checks each of them on the wire.
///
/// The default promises nothing; `with_*` adds promises, so that a new one does not break who implements providers.
///
/// ```
/// use formwork_core::{Capabilities, Enforcement};
///
/// let capabilities = Capabilities::new(Enforcement::Schema).with_temperature().with_seed().with_context_tokens(8192);
/// assert!(capabilities.temperature && !capabilities.top_p);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Capabilities {
    /// The most that it can enforce.
    pub enforcement: Enforcement,
    /// The dialects of JSON Schema that it takes, by the names of their [`Lower`](crate::Lower)s, the strictest first.
    #[serde(default)]
    pub dialects: Vec<String>,
    /// It takes a temperature.
    pub temperature: bool,
    /// It takes a nucleus (top-p) threshold.
    pub top_p: bool,
    /// It takes a seed.
    pub seed: bool,
    /// It takes system messages after the first user message.
    pub late_system: bool,
    /// It keeps to the [`Rule`](crate::Rule)s of a call while decoding.
    pub rules: bool,
    /// The most tokens that prompt and answer may have together, if known.
    pub context_tokens: Option<u32>,
    /// The most tokens that an answer may have, if known.
    pub output_tokens: Option<u32>,
    /// The largest number of tokens that an answer is asked for where the caller sets no limit. Default: `None`, no limit is
    /// sent. Where [`context_tokens`](Self::context_tokens) is known, what the prompt leaves of it is a limit as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_max_tokens: Option<u32>,
    /// Whether the provider closes the document within the limit of tokens while decoding, and marks what it closed. Default:
    /// `false`. A schema is not bounded for such a provider.
    #[serde(default)]
    pub keeps_limit: bool,
}

impl Capabilities {
    /// Returns the capabilities of a provider that enforces so much and promises nothing else.
    pub fn new(enforcement: Enforcement) -> Self {
        Self { enforcement, ..Self::default() }
    }

    /// Adds a dialect in which schemas are taken, after those that were named before (default: none).
    #[must_use]
    pub fn with_dialect(mut self, name: impl Into<String>) -> Self {
        self.dialects.push(name.into());
        self
    }

    /// Promises that a temperature is taken (default: it is left out of calls).
    #[must_use]
    pub const fn with_temperature(mut self) -> Self {
        self.temperature = true;
        self
    }

    /// Promises that top-p is taken (default: it is left out of calls).
    #[must_use]
    pub const fn with_top_p(mut self) -> Self {
        self.top_p = true;
        self
    }

    /// Promises that a seed is taken (default: it is left out of calls).
    #[must_use]
    pub const fn with_seed(mut self) -> Self {
        self.seed = true;
        self
    }

    /// Promises that system messages may stand anywhere (default: only at the beginning).
    #[must_use]
    pub const fn with_late_system(mut self) -> Self {
        self.late_system = true;
        self
    }

    /// Promises that rules are kept while decoding (default: they are only checked afterwards).
    #[must_use]
    pub const fn with_rules(mut self) -> Self {
        self.rules = true;
        self
    }

    /// Sets the size of the context in tokens (default: unknown).
    #[must_use]
    pub const fn with_context_tokens(mut self, tokens: u32) -> Self {
        self.context_tokens = Some(tokens);
        self
    }

    /// Sets the most tokens that an answer can have (default: unknown).
    #[must_use]
    pub const fn with_output_tokens(mut self, tokens: u32) -> Self {
        self.output_tokens = Some(tokens);
        self
    }

    /// Sets the limit of tokens for answers that the caller sets none for (default: none is sent).
    #[must_use]
    pub const fn with_default_max_tokens(mut self, tokens: u32) -> Self {
        self.default_max_tokens = Some(tokens);
        self
    }

    /// Promises that the document is closed within the limit of tokens while decoding (default: no promise).
    #[must_use]
    pub const fn with_limit_kept(mut self) -> Self {
        self.keeps_limit = true;
        self
    }
}
