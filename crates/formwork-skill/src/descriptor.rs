use std::collections::BTreeMap;
use std::time::Duration;

use formwork_core::{Backoff, Policy, Temperature};
use formwork_review::{Agent, ReviewRubric};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The contents of a skill's file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SkillDescriptor {
    /// The skill's name: small letters, digits and hyphens.
    #[schemars(regex(pattern = r"^[a-z0-9][a-z0-9-]{0,63}$"))]
    pub name: String,
    /// The purpose, in one line.
    #[schemars(length(min = 1, max = 300))]
    pub description: String,
    /// The template that does the work; the handler does it if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_type: Option<TemplateType>,
    /// The registered handler, where there is no `template_type`; the skill's name by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
    /// The inputs, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, InputSpec>,
    /// The instructions before the question: a Jinja template of the inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The question, or, of a review, what the output was made for: a Jinja template of the inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputSpec>,
    /// The input that `LLM_REVIEW` reviews; the only one by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The rubric that the output is reviewed against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rubric: Option<ReviewRubric>,
    /// The same out of another file, below the folder of this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rubric_file: Option<String>,
    /// Whether an output that fails its review is generated once more, with the critique. Not by default.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retry_once: bool,
    /// The provider that is asked, by its name in the configuration; whoever is asked anyway by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// How it is asked.
    #[serde(default, skip_serializing_if = "PolicySpec::is_default")]
    pub policy: PolicySpec,
    /// Inputs to try it with; `formwork skill report` runs them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Map<String, Value>>,
}

/// The kind of work that a template does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TemplateType {
    /// [`LlmGenerationService`](crate::LlmGenerationService).
    LlmJsonGeneration,
    /// [`LlmReviewService`](crate::LlmReviewService).
    LlmReview,
}

impl TemplateType {
    /// As it is written in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LlmJsonGeneration => "LLM_JSON_GENERATION",
            Self::LlmReview => "LLM_REVIEW",
        }
    }
}

/// One input of a skill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InputSpec {
    /// The kind of value.
    #[serde(rename = "type")]
    pub kind: InputType,
    /// The meaning, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Whether it may be left out; templates see null then. No by default.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// The value if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The only values that it may have.
    #[serde(default, rename = "enum", skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<Value>>,
    /// The most characters of a string; 100 000 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u32>,
    /// The other conditions on it: a JSON Schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

/// The kind of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InputType {
    /// Text.
    String,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// Yes or no.
    Boolean,
    /// A list.
    Array,
    /// An object.
    Object,
}

impl InputType {
    /// As JSON Schema calls it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Array => "array",
            Self::Object => "object",
        }
    }
}

/// The output of a skill: exactly one of these.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputSpec {
    /// A JSON Schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// A file below the folder of this one: a shape if it ends in `.shape`, a JSON Schema otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// A shape: `{"title": string, "tags": [string]}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<String>,
}

/// How a skill asks, where it differs from the agent layer's rules.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicySpec {
    /// How many answers may be asked for; 2 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10))]
    pub attempts: Option<u32>,
    /// The most of these answers that one target is asked for; an equal share, rounded up, by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10))]
    pub attempts_per_target: Option<u32>,
    /// The temperature of the first attempt; 0.7 by default, 0.2 of a review.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2))]
    pub temperature: Option<f64>,
    /// The most of those that follow; 0.2 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2))]
    pub retry_temperature: Option<f64>,
    /// The most tokens of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u32>,
    /// Seconds for everything that the skill does; 60 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.1, max = 3600))]
    pub timeout_seconds: Option<f64>,
    /// Seconds before each repetition of a call that failed, one for each; 2, 4 and 8 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10), inner(range(min = 0, max = 600)))]
    pub backoff_seconds: Option<Vec<f64>>,
}

impl PolicySpec {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns this with the values of `other` where it says nothing itself.
    #[must_use]
    pub fn or(self, other: &Self) -> Self {
        Self {
            attempts: self.attempts.or(other.attempts),
            attempts_per_target: self.attempts_per_target.or(other.attempts_per_target),
            temperature: self.temperature.or(other.temperature),
            retry_temperature: self.retry_temperature.or(other.retry_temperature),
            max_tokens: self.max_tokens.or(other.max_tokens),
            timeout_seconds: self.timeout_seconds.or(other.timeout_seconds),
            backoff_seconds: self.backoff_seconds.or_else(|| other.backoff_seconds.clone()),
        }
    }

    /// The agent layer's policy with these differences.
    pub fn policy(&self) -> Policy {
        let first = self.temperature.unwrap_or(Agent::TEMPERATURE);
        let mut policy = formwork_review::policy(first);
        policy.attempts = self.attempts.unwrap_or(policy.attempts);
        policy.attempts_per_target = self.attempts_per_target.or(policy.attempts_per_target);
        policy.temperature = Temperature::AtMost { first, then: self.retry_temperature.unwrap_or(0.2) };
        if let Some(seconds) = &self.backoff_seconds {
            let waits = seconds.iter().map(|seconds| (seconds * 1000.0).round() as u64).collect();
            policy = policy.with_backoff(Backoff { waits, jitter: 0.0 });
        }
        policy
    }

    /// The limit on the time of everything.
    pub fn time_limit(&self) -> Duration {
        let seconds = self.timeout_seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        seconds.unwrap_or(Agent::TIME_LIMIT)
    }
}
