use formwork_core::{Capabilities, Enforcement, Price};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Date, Patterns};

/// A row of a [`Registry`](super::Registry): what is known of some models.
///
/// A row promises nothing that it leaves out. Only `match`, `family`, `provider`, `native`, `source` and `checked` have to
/// be there.
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
    /// The names that the row is about: a pattern, or a list of them.
    #[serde(rename = "match")]
    pub patterns: Patterns,
    /// The name that people have for these models.
    pub family: String,
    /// Whose interface they are reached by: `openai`, `ollama`.
    pub provider: String,
    /// How they are kept to a schema by their own means.
    pub native: NativeMode,
    /// In which dialect that mode takes schemas, if one is written for it here; see [`Dialects`](crate::Dialects). Only
    /// where `native` is `schema`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<String>,
    /// Whether requests for a schema have a flag `strict`, and it is to be `true`.
    #[serde(default)]
    pub strict: bool,
    /// Whether they have, beside `native`, a mode in which the answer is some JSON object.
    #[serde(default)]
    pub json_object: bool,
    /// Whether they take a temperature.
    #[serde(default)]
    pub temperature: Temperature,
    /// Whether they take top-p, where they take a temperature.
    #[serde(default)]
    pub top_p: bool,
    /// Whether they take a seed.
    #[serde(default)]
    pub seed: bool,
    /// Whether they take system messages after the first user message.
    #[serde(default)]
    pub late_system: bool,
    /// Whether they think before they answer.
    #[serde(default)]
    pub reasoning: Reasoning,
    /// Whether an answer may be begun for them, with a last message of the assistant's.
    #[serde(default)]
    pub prefill: bool,
    /// Whether they may be made to call one tool.
    #[serde(default)]
    pub forced_tool: bool,
    /// The most tokens that prompt and answer may have together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u32>,
    /// The most tokens that an answer may have, thoughts included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u32>,
    /// Whether they are so small that they do not end texts and lists by themselves (fewer than 500 million parameters):
    /// answers have 512 tokens and schemas are [bounded](formwork_core::Tighten::Bounded) unless the configuration says
    /// otherwise.
    #[serde(default)]
    pub tiny: bool,
    /// The most that a schema may come to.
    #[serde(default, skip_serializing_if = "Limits::is_empty")]
    pub limits: Limits,
    /// The price of tokens, where it is certain and depends on nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// The use that they are recommended for.
    #[serde(default, rename = "use", skip_serializing_if = "Option::is_none")]
    pub recommended_use: Option<String>,
    /// The day that is announced for their end. From the next one on they count as gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retires: Option<Date>,
    /// Whether they are gone.
    #[serde(default)]
    pub retired: bool,
    /// The source of the row.
    pub source: String,
    /// The day on which it was looked at last.
    pub checked: Date,
    /// Notes for their users.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub notes: String,
}

impl Entry {
    /// Returns the row's promises of these models, as far as a provider can be asked for them.
    ///
    /// - The dialects go from the strictest to the plainest: the row's own, then `json-object` if there is such a mode,
    ///   then `prompt`. No dialect is written for tools as yet, so `native = "tool"` adds none.
    /// - `when_effort_none` counts as a temperature where models think only on demand, as nobody demands it here.
    /// - `prefill`, `forced_tool`, `strict`, `limits` and `price` are no capabilities: see the row.
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

    /// Whether they are gone on this day: they are marked so, or their last day is over.
    pub fn is_retired(&self, on: Date) -> bool {
        self.retired || self.retires.is_some_and(|last| last < on)
    }
}

/// How a model is kept to a schema by its own means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NativeMode {
    /// The schema bounds each next token.
    Schema,
    /// The schema is that of a tool's arguments.
    Tool,
    /// It is bounded to some JSON object.
    Object,
    /// By none.
    None,
}

impl NativeMode {
    /// How far that goes.
    pub const fn enforcement(self) -> Enforcement {
        match self {
            Self::Schema => Enforcement::Schema,
            Self::Tool => Enforcement::Tool,
            Self::Object => Enforcement::JsonObject,
            Self::None => Enforcement::None,
        }
    }

    /// The word for it in the file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Schema => "schema",
            Self::Tool => "tool",
            Self::Object => "object",
            Self::None => "none",
        }
    }
}

/// Whether a model takes a temperature.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Temperature {
    /// It does.
    Yes,
    /// It refuses or ignores it, or it is not known to take it.
    #[default]
    No,
    /// It does while it does not think.
    WhenEffortNone,
}

impl Temperature {
    /// The word for it in the file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::WhenEffortNone => "when_effort_none",
        }
    }
}

/// Whether a model thinks before it answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reasoning {
    /// It does not, or it is not known to.
    #[default]
    None,
    /// When it is asked to.
    Optional,
    /// Unless it is told not to.
    ByDefault,
    /// Always, whatever it is told.
    Always,
}

impl Reasoning {
    /// The word for it in the file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Optional => "optional",
            Self::ByDefault => "by_default",
            Self::Always => "always",
        }
    }
}

/// The most that a schema may come to before it is refused, as far as it is known. Where a request has several schemas, all
/// of them together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Limits {
    /// How many properties.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub properties: Option<u32>,
    /// How many levels of objects in objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// How many values in all `enum`s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enum_values: Option<u32>,
    /// How many characters in names and values of `enum` and `const`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub characters: Option<u32>,
    /// How many properties that may be absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optional: Option<u32>,
    /// How many places with more than one type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unions: Option<u32>,
    /// How many strict tools in a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict_tools: Option<u32>,
}

impl Limits {
    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
