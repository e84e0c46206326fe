use std::future::Future;
use std::pin::Pin;

use async_trait::async_trait;
use formwork_review::{Agent, LlmGenerationService, LlmReviewService};
use serde_json::{Map, Value};

use crate::{Skill, SkillError, SkillOutcome};

/// A run of a skill. Skills can run each other, so its type has to be boxed.
pub(crate) type Running<'a> = Pin<Box<dyn Future<Output = Result<SkillOutcome, SkillError>> + Send + 'a>>;

/// The skills that a handler can run.
pub(crate) trait Skills: Send + Sync {
    /// Runs a skill for the skills in `chain`, within the remaining time of `outer`.
    fn run<'a>(
        &'a self,
        name: &'a str,
        supplied: Value,
        chain: &'a [String],
        outer: Option<&'a Agent>,
    ) -> Running<'a>;
}

/// Does the work of a skill without a `template_type`.
///
/// Implement it for a type that holds what the handler needs. An async closure cannot be a handler, because it cannot
/// borrow its context.
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
    /// Returns the skill's output.
    ///
    /// # Errors
    /// The handler's own error; [`SkillContext::failed`] creates one from a message.
    async fn handle(&self, cx: &SkillContext<'_>) -> Result<Value, SkillError>;
}

/// The context of a handler: the skill, its validated inputs, and the services.
///
/// ```
/// use formwork_skill::{SkillContext, SkillError, SkillHandler};
/// use serde_json::{Value, json};
///
/// struct Twice;
///
/// #[async_trait::async_trait]
/// impl SkillHandler for Twice {
///     async fn handle(&self, cx: &SkillContext<'_>) -> Result<Value, SkillError> {
///         let other = cx.inputs()["skill"].as_str().ok_or_else(|| cx.failed("`skill` is not a string"))?;
///         let first = cx.execute(other, json!({})).await?;
///         let second = cx.execute(other, json!({})).await?;
///         Ok(json!([first.output, second.output]))
///     }
/// }
/// ```
pub struct SkillContext<'a> {
    pub(crate) skills: &'a dyn Skills,
    pub(crate) skill: &'a Skill,
    pub(crate) inputs: &'a Map<String, Value>,
    pub(crate) generation: LlmGenerationService,
    pub(crate) review: LlmReviewService,
    /// The names of the skills that run each other, this one last.
    pub(crate) chain: &'a [String],
}

impl SkillContext<'_> {
    /// Returns the skill.
    pub const fn skill(&self) -> &Skill {
        self.skill
    }

    /// Returns the inputs, including defaults.
    pub const fn inputs(&self) -> &Map<String, Value> {
        self.inputs
    }

    /// Returns the rendered system prompt and prompt.
    ///
    /// # Errors
    /// [`SkillError::Template`] if a template cannot be rendered.
    pub fn prompt(&self) -> Result<(Option<String>, String), SkillError> {
        self.skill.render(self.inputs)
    }

    /// Returns the generation service, with the skill's provider and policy.
    pub const fn generation(&self) -> &LlmGenerationService {
        &self.generation
    }

    /// Returns the review service, with the skill's provider and policy.
    pub const fn review(&self) -> &LlmReviewService {
        &self.review
    }

    /// Runs another skill, within the remaining time.
    ///
    /// # Errors
    /// The errors of [`SkillRunnerService::execute`](crate::SkillRunnerService::execute), and [`SkillError::Recursion`] for
    /// a skill that is already running.
    pub fn execute(
        &self,
        skill: &str,
        inputs: Value,
    ) -> impl Future<Output = Result<SkillOutcome, SkillError>> + Send {
        let skill = skill.to_owned();
        async move { self.skills.run(&skill, inputs, self.chain, Some(self.generation.agent())).await }
    }

    /// Returns an error of the handler with a message.
    pub fn failed(&self, message: impl std::fmt::Display) -> SkillError {
        SkillError::failed(self.skill.name(), message)
    }
}

formwork_core::debug_fields!(SkillContext<'c> { skill.name() });
