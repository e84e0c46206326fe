use formwork_core::ErrorKind;
use formwork_review::GenerationResult;
use formwork_skill::{Skill, SkillError, SkillOutcome, TemplateType};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// A skill in `formwork skill list --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SkillRow {
    /// The skill's name.
    pub name: String,
    /// The skill's purpose.
    pub description: String,
    /// The kind of template that does the work; null is a handler.
    pub template_type: Option<TemplateType>,
    /// Its file.
    pub file: String,
    /// The JSON Schema of its inputs.
    pub inputs: Value,
    /// The JSON Schema of its output; null where it says none.
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
#[derive(Debug, Serialize, JsonSchema)]
pub struct SkillRunOutput {
    /// The skill.
    pub skill: String,
    /// Whether the command ends with exit code 0: there is an output, and its review, if it has one, was carried out and passed
    /// (with `--fail-on-indeterminate`: without an indeterminate criterion).
    pub ok: bool,
    /// The outcome; also where its review failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<SkillOutcome>,
    /// Why there is no outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<SkillRunError>,
}

/// The reason why a skill has no result.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SkillRunError {
    /// The class, if a model was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<ErrorKind>,
    /// In words.
    pub message: String,
    /// Every call, where something was to be generated.
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
        Self { skill: skill.to_owned(), ok, outcome: result.as_ref().ok().cloned(), error }
    }
}
