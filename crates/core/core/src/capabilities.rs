use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The degree to which a provider enforces a schema, in ascending order.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Enforcement {
    /// None: the schema is at most part of the prompt.
    #[default]
    None,
    /// The answer is some JSON object.
    JsonObject,
    /// The answer is the arguments of a tool with this schema, which is not enforced while decoding.
    Tool,
    /// Decoding is constrained to the schema.
    Schema,
}

/// The capabilities that a provider promises. The conformance suite checks each of them on the wire.
///
/// The default promises nothing. Each promise is added by a `with_*` method, so that new ones do not break providers.
///
/// ```
/// use formwork_core::{Capabilities, Enforcement};
///
/// let capabilities = Capabilities::new(Enforcement::Schema).with_temperature().with_seed().with_context_tokens(8192);
/// assert!(capabilities.temperature && !capabilities.top_p);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
#[must_use]
pub struct Capabilities {
    /// The strictest enforcement that it supports.
    pub enforcement: Enforcement,
    /// The dialects of JSON Schema that it accepts, by the names of their [`Lower`](crate::Lower)s, from the strictest to
    /// the weakest.
    #[serde(default)]
    pub dialects: Vec<String>,
    /// Whether it supports a temperature.
    pub temperature: bool,
    /// The highest temperature that it supports (default: any). A higher one is not sent, like every parameter that it lacks.
    #[serde(skip)]
    pub max_temperature: Option<f64>,
    /// Whether it supports a nucleus (top-p) threshold.
    pub top_p: bool,
    /// Whether it supports a seed.
    pub seed: bool,
    /// Whether it supports a frequency penalty.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub frequency_penalty: bool,
    /// Whether it accepts system messages after the first user message.
    pub late_system: bool,
    /// Whether the model continues a last message of the assistant (prefill). In modes in which the schema is only in the prompt
    /// that message is then the opening of the document, so that the model writes nothing before it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prefill: bool,
    /// Whether it enforces the [`Rule`](crate::Rule)s of a call while decoding.
    pub rules: bool,
    /// The maximum number of tokens of prompt and answer together, if known.
    pub context_tokens: Option<u32>,
    /// The maximum number of tokens of a prompt, if it is known and lower than [`context_tokens`](Self::context_tokens).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u32>,
    /// The maximum number of tokens of an answer, if known.
    pub output_tokens: Option<u32>,
    /// The maximum number of tokens that is sent where the caller sets no limit (default: `None`, no limit is sent). Where
    /// [`context_tokens`](Self::context_tokens) is known, the rest of the context after the prompt is a limit as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_max_tokens: Option<u32>,
    /// The number of reasoning tokens that an answer may have in addition to its text, if it is configured: a token limit that the
    /// run computes has room for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u32>,
    /// Whether the provider completes the document within the token limit while decoding, and marks the part that it wrote
    /// (default: `false`). A schema is not bounded for such a provider.
    #[serde(default)]
    pub keeps_limit: bool,
    /// The settings of the configuration that the provider does not take, such as `top_k` or `effort = "max"`. Each is a warning of
    /// the outcome.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored_settings: Vec<String>,
    /// The [settings](crate::ModelSettings) that calls may have, by their names; `effort=low` for each value of those with few values
    /// (default: none).
    #[serde(skip)]
    pub settings: Vec<String>,
    /// Whether it offers the tools of a call to the model (default: no).
    #[serde(skip)]
    pub tools: bool,
    /// Whether the model can be required to call one of the tools (default: no).
    #[serde(skip)]
    pub required_tools: bool,
}

impl Capabilities {
    /// The [reasoning tokens](Self::reasoning_tokens) of a model that reasons for an unknown time: OpenAI's guide advises to
    /// reserve as many for reasoning and answer.
    pub const REASONING_TOKENS: u32 = 25_000;

    /// Creates the capabilities of a provider with this enforcement and no other promise.
    pub fn new(enforcement: Enforcement) -> Self {
        Self { enforcement, ..Self::default() }
    }

    /// Returns whether the provider supports this temperature.
    ///
    /// ```
    /// use formwork_core::{Capabilities, Enforcement};
    ///
    /// let capabilities = Capabilities::new(Enforcement::Schema).with_temperature().with_max_temperature(1.0);
    /// assert!(capabilities.takes_temperature(1.0) && !capabilities.takes_temperature(1.5));
    /// ```
    pub fn takes_temperature(&self, temperature: f64) -> bool {
        self.temperature && self.max_temperature.is_none_or(|max| temperature <= max)
    }

    /// Adds a dialect of JSON Schema, after those that were added before (default: none).
    pub fn with_dialect(mut self, name: impl Into<String>) -> Self {
        self.dialects.push(name.into());
        self
    }

    crate::setters! {
        /// Promises support for a temperature (default: calls have none).
        pub const fn with_temperature(temperature = true);
        /// Limits the temperatures that it supports (default: any).
        pub const fn with_max_temperature(Some(max_temperature): f64);
        /// Promises support for top-p (default: calls have none).
        pub const fn with_top_p(top_p = true);
        /// Promises support for a seed (default: calls have no seed).
        pub const fn with_seed(seed = true);
        /// Promises support for a frequency penalty (default: calls have none).
        pub const fn with_frequency_penalty(frequency_penalty = true);
        /// Promises that system messages may be anywhere (default: only at the beginning).
        pub const fn with_late_system(late_system = true);
        /// Promises to continue a last message of the assistant (default: the last message is the user's).
        pub const fn with_prefill(prefill = true);
        /// Promises to offer the tools of a call to the model (default: calls have none).
        pub const fn with_tools(tools = true);
        /// Promises to require a call of one of the tools where a call asks for that (default: the model decides).
        pub const fn with_required_tools(required_tools = true);
        /// Promises to enforce rules while decoding (default: rules are only checked afterwards).
        pub const fn with_rules(rules = true);
        /// Sets the size of the context in tokens (default: unknown).
        pub const fn with_context_tokens(Some(context_tokens): u32);
        /// Sets the maximum number of tokens of a prompt (default: that of the context).
        pub const fn with_input_tokens(Some(input_tokens): u32);
        /// Sets the maximum number of tokens of an answer (default: unknown).
        pub const fn with_output_tokens(Some(output_tokens): u32);
        /// Sets the token limit of answers for which the caller sets none (default: none is sent).
        pub const fn with_default_max_tokens(Some(default_max_tokens): u32);
        /// Sets the number of reasoning tokens that an answer may have in addition to its text (default: unknown).
        pub const fn with_reasoning_tokens(Some(reasoning_tokens): u32);
        /// Promises to complete the document within the token limit while decoding (default: no promise).
        pub const fn with_limit_kept(keeps_limit = true);
    }
}
