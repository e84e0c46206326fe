use std::collections::BTreeMap;
use std::time::Duration;

use formwork_core::{Backoff, Policy, Temperature};
use formwork_review::{Agent, ReviewRubric};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The contents of a skill's file.
///
/// ```
/// use formwork_skill::{Skill, TemplateType};
///
/// let skill = Skill::parse("greet.yaml", "
/// name: greet
/// description: Greets somebody.
/// template_type: LLM_JSON_GENERATION
/// inputs: {name: {type: string}}
/// prompt: Greet {{ name }}.
/// output: {shape: '{\"greeting\": string}'}
/// ")?;
/// let descriptor = skill.descriptor();
/// assert_eq!(descriptor.template_type, Some(TemplateType::LlmJsonGeneration));
/// assert!(descriptor.inputs.contains_key("name") && !descriptor.retry_once);
/// # Ok::<(), formwork_skill::SkillError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SkillDescriptor {
    /// The skill's name: lower-case letters, digits and hyphens.
    #[schemars(regex(pattern = r"^[a-z0-9][a-z0-9-]{0,63}$"))]
    pub name: String,
    /// The purpose of the skill, in one line.
    #[schemars(length(min = 1, max = 300))]
    pub description: String,
    /// The template that does the work; without it, a handler does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_type: Option<TemplateType>,
    /// The name of the registered handler, for a skill without `template_type` (default: the skill's name).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<String>,
    /// The inputs, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, InputSpec>,
    /// The system prompt: a Jinja template of the inputs (default: none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The prompt, or for a review the task of the output under review: a Jinja template of the inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The schema of the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputSpec>,
    /// The name of the input that `LLM_REVIEW` reviews (default: the only input).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The rubric of the output's review.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rubric: Option<ReviewRubric>,
    /// The path of a file with the rubric, relative to the folder of this file and inside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rubric_file: Option<String>,
    /// Whether an output that fails its review is generated once more, with the critique (default: `false`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retry_once: bool,
    /// The provider's name in the configuration (default: the provider that the configuration uses by default).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The attempts, temperatures and limits of the skill.
    #[serde(default, skip_serializing_if = "PolicySpec::is_default")]
    pub policy: PolicySpec,
    /// Examples of inputs; `formwork skill report` runs them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Map<String, Value>>,
}

/// The kind of work that a template does.
///
/// ```
/// assert_eq!(formwork_skill::TemplateType::LlmReview.as_str(), "LLM_REVIEW");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TemplateType {
    /// Generates JSON, by [`LlmGenerationService`](crate::LlmGenerationService).
    LlmJsonGeneration,
    /// Reviews an input, by [`LlmReviewService`](crate::LlmReviewService).
    LlmReview,
}

impl TemplateType {
    /// Returns the name in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LlmJsonGeneration => "LLM_JSON_GENERATION",
            Self::LlmReview => "LLM_REVIEW",
        }
    }
}

/// One input of a skill.
///
/// ```
/// use formwork_skill::{InputSpec, InputType};
///
/// let input: InputSpec = serde_json::from_str(r#"{"type": "string", "optional": true, "max_length": 80}"#)?;
/// assert_eq!((input.kind, input.optional, input.max_length), (InputType::String, true, Some(80)));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InputSpec {
    /// The type of the value.
    #[serde(rename = "type")]
    pub kind: InputType,
    /// The meaning of the input, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Whether the input may be left out (default: `false`). Templates see `null` then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// The value of an input that is left out (default: none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The allowed values (default: all).
    #[serde(default, rename = "enum", skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<Value>>,
    /// The maximum number of characters of a string (default: 100 000).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u32>,
    /// A JSON Schema with further constraints (default: none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

/// The type of an input.
///
/// ```
/// assert_eq!(formwork_skill::InputType::Boolean.as_str(), "boolean");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InputType {
    /// A string.
    String,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl InputType {
    /// Returns the name in JSON Schema.
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

/// The schema of a skill's output: exactly one of the fields.
///
/// ```
/// use formwork_skill::OutputSpec;
///
/// let output: OutputSpec = serde_json::from_str(r#"{"shape": "{\"title\": string}"}"#)?;
/// assert!(output.schema.is_none() && output.file.is_none() && output.shape.is_some());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputSpec {
    /// A JSON Schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// The path of a file, relative to the folder of this file and inside it: a shape if it ends in `.shape`, otherwise
    /// a JSON Schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// A shape, for example `{"title": string, "tags": [string]}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<String>,
}

/// The attempts, temperatures and limits of a skill; absent fields keep the defaults of the agent layer.
///
/// ```
/// use formwork_skill::PolicySpec;
///
/// let own = PolicySpec { attempts: Some(3), ..PolicySpec::default() };
/// let defaults = PolicySpec { attempts: Some(1), timeout_seconds: Some(20.0), ..PolicySpec::default() };
/// let spec = own.or(&defaults);
/// assert_eq!((spec.attempts, spec.time_limit().as_secs()), (Some(3), 20));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicySpec {
    /// The maximum number of answers (default: 2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10))]
    pub attempts: Option<u32>,
    /// The maximum number of answers of one target (default: an equal share, rounded up).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10))]
    pub attempts_per_target: Option<u32>,
    /// The temperature of the first attempt (default: 0.7, for a review 0.2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2))]
    pub temperature: Option<f64>,
    /// The maximum temperature of later attempts (default: 0.2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2))]
    pub retry_temperature: Option<f64>,
    /// The maximum number of tokens of an answer (default: the target's own limit).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u32>,
    /// The time limit of the whole skill in seconds (default: 60).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.1, max = 3600))]
    pub timeout_seconds: Option<f64>,
    /// The delays before the repetitions of a failed call in seconds, one for each repetition (default: 2, 4 and 8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10), inner(range(min = 0, max = 600)))]
    pub backoff_seconds: Option<Vec<f64>>,
}

impl PolicySpec {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns these settings, with the values of `other` for absent fields.
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

    /// Returns the agent layer's policy with these settings.
    pub fn policy(&self) -> Policy {
        let first = self.temperature.unwrap_or(Agent::TEMPERATURE);
        let mut policy = formwork_review::policy(first);
        policy.attempts = self.attempts.unwrap_or(policy.attempts);
        policy.attempts_per_target = self.attempts_per_target.or(policy.attempts_per_target);
        policy.temperature = Temperature::AtMost { first, then: self.retry_temperature.unwrap_or(0.2) };
        if let Some(seconds) = &self.backoff_seconds {
            policy = policy.with_backoff(Backoff::of_seconds(seconds));
        }
        policy
    }

    /// Returns the time limit of the whole skill.
    pub fn time_limit(&self) -> Duration {
        let seconds = self.timeout_seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        seconds.unwrap_or(Agent::TIME_LIMIT)
    }
}
