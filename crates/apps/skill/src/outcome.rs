use formwork_review::{GenerationResult, ReviewResult};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Skill, TemplateType};

/// The outcome of a skill.
///
/// ```
/// use formwork_skill::{NamedBackends, Skill, SkillRunnerService, draft};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), formwork_skill::SkillError> {
/// let yaml = "
/// name: brief
/// description: Reviews the length of a text.
/// template_type: LLM_REVIEW
/// inputs: {text: {type: string}}
/// rubric: {name: brief, criteria: [{id: short, description: At most 9 characters., schema: {maxLength: 9}}]}
/// ";
/// let runner = SkillRunnerService::new(NamedBackends::default()).with_skill(Skill::parse("brief.yaml", yaml)?);
/// let outcome = runner.execute("brief", serde_json::json!({"text": "Hello, Maria!"})).await?;
/// assert!(!outcome.passes(false) && outcome.generation.is_none());
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SkillOutcome {
    /// The name of the skill.
    pub skill: String,
    /// The template that did the work; `null` for a handler.
    pub template_type: Option<TemplateType>,
    /// The output: the generated data, the review, or the handler's value.
    pub output: Value,
    /// The generation with its calls, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<GenerationResult>,
    /// The review of the output, or the review that is the output. Its `error` is the reason if it could not be carried
    /// out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<ReviewResult>,
    /// The duration of the output's validation in microseconds; 0 without a schema.
    pub validation_micros: u64,
    /// The duration of the whole run in milliseconds.
    pub total_millis: u64,
}

impl SkillOutcome {
    /// Returns an outcome that has only the output of a skill.
    pub(crate) fn new(skill: &Skill, output: Value) -> Self {
        Self {
            skill: skill.name().to_owned(),
            template_type: skill.descriptor().template_type,
            output,
            generation: None,
            review: None,
            validation_micros: 0,
            total_millis: 0,
        }
    }

    /// Returns whether the review, if there is one, lets the output through; see [`ReviewResult::passes`].
    pub fn passes(&self, strict: bool) -> bool {
        self.review.as_ref().is_none_or(|review| review.passes(strict))
    }
}
