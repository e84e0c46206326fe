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
        Some(TemplateType::LlmJsonGeneration) => include_str!("../drafts/generation.yaml"),
        Some(TemplateType::LlmReview) => include_str!("../drafts/review.yaml"),
        None => include_str!("../drafts/handler.yaml"),
    };
    format!("name: {name}\n{rest}")
}
