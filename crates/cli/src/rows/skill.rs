use formwork_core::ErrorKind;
use formwork_review::{Gate, GenerationResult};
use formwork_skill::{Skill, SkillError, SkillOutcome, TemplateType};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// A row of `formwork skill list --json`: one skill.
///
/// ```json
/// {"name": "headline", "description": "Writes a headline.", "template_type": "LLM_JSON_GENERATION", "file": "skills/headline.yaml",
///  "inputs": {"type": "object", …}, "output": {"type": "object", …}}
/// ```
#[derive(Debug, Serialize, JsonSchema)]
pub struct SkillRow {
    /// The name of the skill.
    pub name: String,
    /// The purpose of the skill.
    pub description: String,
    /// The type of template; null for a handler.
    pub template_type: Option<TemplateType>,
    /// The file of the skill.
    pub file: String,
    /// The JSON Schema of the inputs.
    pub inputs: Value,
    /// The JSON Schema of the output; null if there is none.
    pub output: Option<Value>,
}

impl SkillRow {
    pub(crate) fn new(skill: &Skill) -> Self {
        Self {
            name: skill.name().to_owned(),
            description: skill.descriptor().description.clone(),
            template_type: skill.descriptor().template_type,
            file: skill.file().to_owned(),
            inputs: skill.input_schema(),
            output: skill.output_schema().cloned(),
        }
    }
}

/// The output of `formwork skill run --json`.
///
/// ```
/// use formwork_cli::rows::{SkillRunError, SkillRunOutput};
///
/// let error = SkillRunError { class: None, message: "the input `text` is missing".into(), generation: None };
/// let output = SkillRunOutput { skill: "headline".into(), ok: false, gate: None, outcome: None, error: Some(error) };
/// assert_eq!(serde_json::to_value(output)?["error"]["message"], "the input `text` is missing");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Serialize, JsonSchema)]
pub struct SkillRunOutput {
    /// The name of the skill.
    pub skill: String,
    /// Whether the command ends with exit code 0: there is an output, and its review, if any, was completed and passed
    /// (with `--fail-on-indeterminate`: without an indeterminate criterion).
    pub ok: bool,
    /// The outcome of the review; null without a review.
    pub gate: Option<Gate>,
    /// The outcome, even if its review failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<SkillOutcome>,
    /// The error, if there is no outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<SkillRunError>,
}

/// The reason why a skill has no result.
///
/// ```
/// use formwork_cli::rows::SkillRunError;
/// use formwork_core::ErrorKind;
///
/// let error = SkillRunError { class: Some(ErrorKind::Rejected), message: "no valid answer".into(), generation: None };
/// assert_eq!(serde_json::to_value(error)?["class"], "rejected");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Serialize, JsonSchema)]
pub struct SkillRunError {
    /// The kind of error, if a model was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<ErrorKind>,
    /// The message for people.
    pub message: String,
    /// Every call of the generation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<GenerationResult>,
}

impl SkillRunOutput {
    pub(crate) fn new(skill: &str, result: &Result<SkillOutcome, SkillError>, ok: bool) -> Self {
        let error = result.as_ref().err().map(|error| SkillRunError {
            class: error.kind(),
            message: error.to_string(),
            generation: match error {
                SkillError::Generation { result, .. } => Some((**result).clone()),
                _ => None,
            },
        });
        let review = result.as_ref().ok().and_then(|outcome| outcome.review.as_ref());
        Self {
            skill: skill.to_owned(),
            ok,
            gate: review.map(|review| review.gate),
            outcome: result.as_ref().ok().cloned(),
            error,
        }
    }
}
