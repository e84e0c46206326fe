//! The text of a new skill.

use crate::TemplateType;

/// Returns the text of a new skill's file, which is a valid skill.
///
/// ```
/// use formwork_skill::{Skill, TemplateType, draft};
///
/// let skill = Skill::parse("my-skill.yaml", &draft("my-skill", Some(TemplateType::LlmReview)))?;
/// assert_eq!(skill.rubric().unwrap().criteria.len(), 2);
/// # Ok::<(), formwork_skill::SkillError>(())
/// ```
pub fn draft(name: &str, template_type: Option<TemplateType>) -> String {
    let rest = match template_type {
        Some(TemplateType::LlmJsonGeneration) => GENERATION,
        Some(TemplateType::LlmReview) => REVIEW,
        None => HANDLER,
    };
    format!("name: {name}\n{rest}")
}

const GENERATION: &str = r#"description: What it does, in one line.
template_type: LLM_JSON_GENERATION
inputs:
  text: {type: string, description: The text., max_length: 4000}
prompt: |
  Find a title and up to three keywords for this text.

  {{ text }}
output:
  shape: |
    {
      "title": string,
      "keywords": [string]
    }
policy: {max_tokens: 200}
examples:
  - text: Maria, 34, moved to Lisbon last spring.
"#;

const REVIEW: &str = r#"description: What it reviews, in one line.
template_type: LLM_REVIEW
inputs:
  text: {type: string, description: The text to review., max_length: 4000}
rubric:
  name: text
  criteria:
    - id: polite
      description: The text is polite.
      fix: Say please.
    - id: short
      description: The text has at most 500 characters.
      schema: {maxLength: 500}
examples:
  - text: Would you please send us the form?
"#;

const HANDLER: &str = r#"description: What it does, in one line.
# No template_type: the handler that is registered under this name is called.
inputs:
  text: {type: string, description: The text., max_length: 4000}
"#;
