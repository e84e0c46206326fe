//! Skills: tasks for language models, defined in files.
//!
//! A [`Skill`] is a YAML file with typed inputs, a prompt, the schema of the output, and a policy. Its `template_type`
//! determines who does the work: `LLM_JSON_GENERATION` generates JSON, `LLM_REVIEW` reviews an input against a rubric,
//! and a skill without it calls a handler of yours. [`SkillRunnerService::execute`] resolves the skill, validates the
//! inputs and builds the context before it starts the work.
//!
//! ```
//! use formwork_skill::{NamedBackends, Skill, SkillRunnerService};
//! use formwork_testkit::Scripted;
//! use serde_json::json;
//! use std::sync::Arc;
//!
//! let skill = Skill::parse("headline.yaml", r#"
//! name: headline
//! description: Finds a headline for a text.
//! template_type: LLM_JSON_GENERATION
//! inputs:
//!   text: {type: string, description: The text., max_length: 5000}
//! prompt: |
//!   Find a headline for this text: {{ text }}
//! output:
//!   shape: '{"headline": string}'
//! "#)?;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn run(skill: Skill) -> Result<(), Box<dyn std::error::Error>> {
//! let model = Scripted::new([r#"{"headline": "Maria moves to Lisbon"}"#]);
//! let runner = SkillRunnerService::new(NamedBackends::new([Arc::new(model).into()])).with_skill(skill);
//! let outcome = runner.execute("headline", json!({"text": "Maria, 34, moved to Lisbon."})).await?;
//! assert_eq!(outcome.output["headline"], "Maria moves to Lisbon");
//! // The inputs are validated before any call of a model.
//! let error = runner.execute("headline", json!({"txt": "x"})).await.unwrap_err();
//! assert!(error.to_string().contains("there is no input `txt`: did you mean `text`?"));
//! # Ok(()) }
//! # run(skill)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Descriptors
//! [`SkillDescriptor`] lists the fields of a file; `schemas/skill.json` is its JSON Schema, for editors. All mistakes
//! in a file are reported at once, with line, column and expectation, including template variables that are not inputs.
//! Templates are Jinja templates, rendered by minijinja: an undefined name is an error, and so is a template that runs
//! for too long. References to other files are paths relative to the descriptor's folder, and inside it.
//!
//! # Handlers
//! A [`SkillHandler`] gets a [`SkillContext`] with the validated inputs, both services, and a method to run other
//! skills. A skill that runs itself is an error. All work of one call shares a time limit of [60
//! seconds](formwork_review::Agent::TIME_LIMIT).
//!
//! # Embedding
//! docs/ARCHITECTURE.md lists the crates that this one depends on.

mod backends;
mod descriptor;
mod draft;
mod error;
mod files;
mod handler;
mod inputs;
mod outcome;
mod report;
mod runner;
mod skill;
mod template;

pub use backends::{Backends, NamedBackends};
pub use descriptor::{InputSpec, InputType, OutputSpec, PolicySpec, SkillDescriptor, TemplateType};
pub use draft::draft;
pub use error::SkillError;
pub use formwork_review::{LlmGenerationService, LlmReviewService};
pub use handler::{SkillContext, SkillHandler};
pub use outcome::SkillOutcome;
pub use report::{SkillReport, Tally, Target};
pub use runner::SkillRunnerService;
pub use skill::Skill;
pub use template::Template;
