use std::fmt;

use formwork_core::{Capabilities, Enforcement, Price};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Date, Patterns};

/// A row of a [`Registry`](super::Registry): facts about some models.
///
/// A row promises nothing that it leaves out. `match`, `family`, `provider`, `native`, `source` and `checked` are
/// required.
///
/// ```toml
/// [[model]]
/// match = "gpt-4o-mini*"
/// family = "GPT-4o-mini"
/// provider = "openai"
/// native = "schema"
/// dialect = "openai"
/// strict = true
/// json_object = true
/// temperature = "yes"
/// context_tokens = 128000
/// use = "High-volume, cost-sensitive"
/// source = "the vendor's documentation"
/// checked = "2026-11-21"
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Entry {
    /// The names of the models: a pattern, or a list of patterns.
    #[serde(rename = "match")]
    pub patterns: Patterns,
    /// The common name of these models.
    pub family: String,
    /// The provider whose API they have: `openai`, `ollama`.
    pub provider: String,
    /// The native enforcement of the models.
    pub native: NativeMode,
    /// The dialect of that enforcement, if there is one; see [`Dialects`](crate::Dialects). Only if `native` is
    /// `schema`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
    /// Whether requests with a schema need `strict: true`.
    #[serde(default)]
    pub strict: bool,
    /// Whether the models have, besides `native`, a mode that enforces some JSON object.
    #[serde(default)]
    pub json_object: bool,
    /// Whether the models accept a temperature.
    #[serde(default)]
    pub temperature: Temperature,
    /// Whether the models accept top-p, if they accept a temperature.
    #[serde(default)]
    pub top_p: bool,
    /// Whether the models accept a seed.
    #[serde(default)]
    pub seed: bool,
    /// Whether the models accept system messages after the first user message.
    #[serde(default)]
    pub late_system: bool,
    /// Whether the models reason before they answer.
    #[serde(default)]
    pub reasoning: Reasoning,
    /// Whether a last message of the assistant can start the answer (prefill). Used by providers of kind `anthropic` and `bedrock`
    /// where the schema is only in the prompt.
    #[serde(default)]
    pub prefill: bool,
    /// Whether the models can be forced to call a tool.
    #[serde(default)]
    pub forced_tool: bool,
    /// The maximum number of tokens of prompt and answer together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u32>,
    /// The maximum number of tokens of a prompt, if it is lower than `context_tokens`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u32>,
    /// The maximum number of tokens of an answer, including reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u32>,
    /// Whether the models are so small that they do not end texts and lists by themselves (fewer than 500 million
    /// parameters). Answers then have 512 tokens and schemas are [bounded](formwork_core::Tighten::Bounded), unless the
    /// configuration sets other values.
    #[serde(default)]
    pub tiny: bool,
    /// The maximum size of a schema.
    #[serde(default, skip_serializing_if = "Limits::is_empty")]
    pub limits: Limits,
    /// The price of tokens (default: that of the table of prices, if it has the model).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// The recommended use.
    #[serde(default, rename = "use", skip_serializing_if = "Option::is_none")]
    pub recommended_use: Option<String>,
    /// The announced day of retirement. The models count as retired after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retires: Option<Date>,
    /// Whether the models are retired.
    #[serde(default)]
    pub retired: bool,
    /// The source of the facts.
    pub source: String,
    /// The day of the last check.
    pub checked: Date,
    /// Notes for users.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub notes: String,
}

impl Entry {
    /// Returns the capabilities of these models, as far as a provider can use them.
    ///
    /// - The dialects go from the strictest to the weakest: the row's own, then `json-object` if there is such a mode,
    ///   then `prompt`. There is no dialect for tools, so `native = "tool"` adds none.
    /// - `when_effort_none` counts as a temperature if models reason on demand only, because no request demands it.
    /// - `prefill`, `forced_tool`, `strict`, `limits` and `price` are not capabilities; see the fields.
    ///
    /// ```
    /// use formwork_dialect::registry::Registry;
    ///
    /// let models = Registry::embedded();
    /// let gpt = models.lookup("gpt-4o").unwrap().capabilities();
    /// assert_eq!(gpt.dialects, ["openai", "json-object", "prompt"]);
    /// assert!(gpt.temperature && !models.lookup("gpt-5.5").unwrap().capabilities().temperature);
    /// ```
    pub fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::new(self.native.enforcement());
        capabilities.dialects = self.dialects().map(str::to_owned).collect();
        let on_demand = self.reasoning == Reasoning::Optional;
        capabilities.temperature = match self.temperature {
            Temperature::Yes => true,
            Temperature::WhenEffortNone => on_demand,
            Temperature::No => false,
        };
        capabilities.top_p = capabilities.temperature && self.top_p;
        capabilities.seed = self.seed;
        capabilities.late_system = self.late_system;
        capabilities.context_tokens = self.context_tokens;
        capabilities.input_tokens = self.input_tokens;
        capabilities.output_tokens = self.output_tokens;
        capabilities
    }

    fn dialects(&self) -> impl Iterator<Item = &str> {
        let own = self.dialect.as_deref().filter(|_| self.native == NativeMode::Schema);
        let has_object_mode = self.json_object || self.native == NativeMode::Object;
        let object = has_object_mode.then_some("json-object").filter(|name| own != Some(name));
        let prompt = Some("prompt").filter(|name| own != Some(name));
        [own, object, prompt].into_iter().flatten()
    }

    /// Returns whether the models are retired on this day: they are marked so, or their last day has passed.
    pub fn is_retired(&self, on: Date) -> bool {
        self.retired || self.retires.is_some_and(|last| last < on)
    }
}

/// The native enforcement of a model.
///
/// ```
/// use formwork_core::Enforcement;
/// use formwork_dialect::registry::NativeMode;
///
/// assert_eq!(NativeMode::Object.to_string(), "object");
/// assert_eq!(NativeMode::Schema.enforcement(), Enforcement::Schema);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NativeMode {
    /// The schema constrains each token.
    Schema,
    /// The schema constrains the arguments of a tool.
    Tool,
    /// The model is constrained to some JSON object.
    Object,
    /// There is no native enforcement.
    None,
}

impl fmt::Display for NativeMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl NativeMode {
    /// Returns the level of enforcement.
    pub const fn enforcement(self) -> Enforcement {
        match self {
            Self::Schema => Enforcement::Schema,
            Self::Tool => Enforcement::Tool,
            Self::Object => Enforcement::JsonObject,
            Self::None => Enforcement::None,
        }
    }
}

/// The support of a model for temperature.
///
/// ```
/// assert_eq!(formwork_dialect::registry::Temperature::WhenEffortNone.to_string(), "when_effort_none");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Temperature {
    /// The model accepts a temperature.
    Yes,
    /// The model rejects or ignores it, or its support is unknown.
    #[default]
    No,
    /// The model accepts it while it does not reason.
    WhenEffortNone,
}

impl fmt::Display for Temperature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The reasoning of a model before its answer.
///
/// ```
/// assert_eq!(formwork_dialect::registry::Reasoning::ByDefault.to_string(), "by_default");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reasoning {
    /// The model does not reason, or its support is unknown.
    #[default]
    None,
    /// The model reasons if the request enables it.
    Optional,
    /// The model reasons unless the request disables it.
    ByDefault,
    /// The model always reasons.
    Always,
}

impl fmt::Display for Reasoning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The known maximum size of a schema, above which it is rejected. For a request with several schemas it applies to their
/// sum.
///
/// ```
/// use formwork_dialect::registry::Limits;
///
/// let mut limits = Limits::default();
/// limits.properties = Some(5000);
/// assert!(!limits.is_empty() && Limits::default().is_empty());
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Limits {
    /// The number of properties.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub properties: Option<u32>,
    /// The number of nested objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// The number of values in all `enum`s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enum_values: Option<u32>,
    /// The number of characters in names, `enum` and `const`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub characters: Option<u32>,
    /// The number of optional properties.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optional: Option<u32>,
    /// The number of schemas with several types.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unions: Option<u32>,
    /// The number of strict tools in a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict_tools: Option<u32>,
}

impl Limits {
    /// Returns whether no limit is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
