use std::future::Future;

use async_trait::async_trait;
use formwork_review::{LlmGenerationService, LlmReviewService};
use serde_json::{Map, Value};

use crate::{Skill, SkillError, SkillOutcome, SkillRunnerService};

/// Does the work of skills without a `template_type`.
///
/// An async closure is no handler, because it cannot borrow its context; an object of your own is, which is also where a
/// handler keeps what it needs.
///
/// ```
/// use formwork_skill::{SkillContext, SkillError, SkillHandler};
/// use serde_json::{Value, json};
///
/// struct Shout;
///
/// #[async_trait::async_trait]
/// impl SkillHandler for Shout {
///     async fn handle(&self, cx: &SkillContext<'_>) -> Result<Value, SkillError> {
///         let text = cx.inputs()["text"].as_str().ok_or_else(|| cx.failed("`text` is no text"))?;
///         Ok(json!({"loud": text.to_uppercase()}))
///     }
/// }
/// ```
#[async_trait]
pub trait SkillHandler: Send + Sync {
    /// Gives the skill's output.
    ///
    /// # Errors
    /// The handler's own error; [`SkillContext::failed`] makes one of a text.
    async fn handle(&self, cx: &SkillContext<'_>) -> Result<Value, SkillError>;
}

/// The context that a handler works with: everything is resolved and checked.
pub struct SkillContext<'a> {
    pub(crate) runner: &'a SkillRunnerService,
    pub(crate) skill: &'a Skill,
    pub(crate) inputs: &'a Map<String, Value>,
    pub(crate) generation: LlmGenerationService,
    pub(crate) review: LlmReviewService,
    /// The skills that ran each other, this one last.
    pub(crate) chain: &'a [String],
}

impl SkillContext<'_> {
    /// The skill.
    pub const fn skill(&self) -> &Skill {
        self.skill
    }

    /// Its inputs, with their defaults.
    pub const fn inputs(&self) -> &Map<String, Value> {
        self.inputs
    }

    /// The system prompt and the prompt, filled in.
    ///
    /// # Errors
    /// [`SkillError::Template`], if one cannot be.
    pub fn prompt(&self) -> Result<(Option<String>, String), SkillError> {
        self.skill.render(self.inputs)
    }

    /// Generates JSON as the skill's provider and policy say.
    pub const fn generation(&self) -> &LlmGenerationService {
        &self.generation
    }

    /// Reviews as the skill's provider and policy say.
    pub const fn review(&self) -> &LlmReviewService {
        &self.review
    }

    /// Runs another skill, within the time that is left.
    ///
    /// # Errors
    /// As [`SkillRunnerService::execute`], and [`SkillError::Recursion`] for a skill that this one was run by.
    pub fn execute(
        &self,
        skill: &str,
        inputs: Value,
    ) -> impl Future<Output = Result<SkillOutcome, SkillError>> + Send {
        let skill = skill.to_owned();
        async move { self.runner.nested(&skill, inputs, self.chain, self.generation.agent()).await }
    }

    /// A failure in the handler's own words.
    pub fn failed(&self, message: impl std::fmt::Display) -> SkillError {
        SkillError::failed(self.skill.name(), message)
    }
}

impl std::fmt::Debug for SkillContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SkillContext").field("skill", &self.skill.name()).finish_non_exhaustive()
    }
}
