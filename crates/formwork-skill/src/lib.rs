//! Skills: what a model is asked for, as files.
//!
//! A [`Skill`] is a YAML file with typed inputs, a prompt, the schema of the output, and how it is asked for. Its
//! `template_type` says who does the work: `LLM_JSON_GENERATION` generates JSON, `LLM_REVIEW` reviews an input against a
//! rubric, and without one a handler of yours is called. [`SkillRunnerService::execute`] resolves the skill, checks the
//! inputs, builds the context, and only then hands over.
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
//! // Inputs are checked before any model is asked.
//! let error = runner.execute("headline", json!({"txt": "x"})).await.unwrap_err();
//! assert!(error.to_string().contains("there is no input `txt`: did you mean `text`?"));
//! # Ok(()) }
//! # run(skill)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Descriptors
//! [`SkillDescriptor`] says what a file may have; `schemas/skill.json` is its JSON Schema, for editors. Everything that is
//! wrong with a file is told at once, with line, column and what was expected: a variable of the template that is no
//! input included. Templates are Jinja's, rendered by minijinja: a name that is not defined is an error, and one that does
//! not end runs out of fuel. Other files are named by their path below the descriptor's folder.
//!
//! # Handlers
//! A [`SkillHandler`] gets a [`SkillContext`] with the checked inputs, both services, and the way to run other skills. A
//! skill that comes to run itself is an error. All that one call does shares [60 seconds](formwork_review::Agent::TIME_LIMIT).
//!
//! # Embedding
//! `examples/embed-skill.rs` uses this crate alone; docs/ARCHITECTURE.md says how many crates come with it.

mod backends;
mod descriptor;
mod draft;
mod error;
mod handler;
mod inputs;
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
pub use report::{SkillReport, Tally, Target};
pub use runner::{SkillOutcome, SkillRunnerService};
pub use skill::Skill;
