//! Reviews a model's output against a rubric, and regenerates it with the critique.
//!
//! A [`ReviewRubric`] has criteria. Each is judged on its own: by a rule, a JSON Schema or a pattern if it has one,
//! otherwise by one call of a model. The model writes its reasoning first, then `pass` or `fail` and its confidence (0 to
//! 100). The verdict *indeterminate* is derived: from a confidence below [`THRESHOLD`], from missing data that the
//! criterion needs, and from criteria that need human judgement. Indeterminate criteria alone never fail a review.
//!
//! ```
//! use formwork_review::{Agent, Criterion, LlmReviewService, ReviewRubric, Verdict};
//! use formwork_testkit::Scripted;
//! use serde_json::json;
//! use std::sync::Arc;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), formwork_core::Error> {
//! let judge = Scripted::new([r#"{"reasoning": "It says how to reproduce it.", "verdict": "pass", "confidence": 90}"#]);
//! let rubric = ReviewRubric::new("issue")
//!     .with_criterion(Criterion::new("steps", "The report says how to reproduce the fault."))
//!     .with_criterion(Criterion { human: true, ..Criterion::new("tone", "The tone suits our brand.") });
//! let reviewer = LlmReviewService::new(Agent::new([Arc::new(judge).into()]));
//! let review = reviewer.review(json!({"title": "Crash", "steps": ["Open the file"]}), &rubric).await?;
//! assert!(review.pass && review.issues.is_empty());
//! assert_eq!(review.indeterminate, ["tone: The tone suits our brand. (a person has to judge this)"]);
//! assert_eq!(review.criteria_results[0].verdict, Verdict::Pass);
//! # Ok(()) }
//! ```
//!
//! - [`LlmReviewService`] reviews an output against a rubric, and compares two outputs in both orders.
//! - [`LlmGenerationService`] generates JSON for a schema. [`generate_with_review`] also reviews the answer and can
//!   generate it once more with the critique.
//! - [`Agent`] holds the models and the rules of the agent layer. [`Run`](formwork_core::Run) makes the calls, retries
//!   and feedback.
//! - [`document`] reads rubrics and other YAML and TOML files, with the location of each mistake.
//!
//! # Embedding
//! docs/ARCHITECTURE.md lists the crates that this one depends on.

mod agent;
mod aggregate;
mod answer;
mod compare;
mod contradiction;
mod decide;
pub mod document;
mod error;
mod generate;
mod generation;
mod material;
mod quote;
mod result;
mod review;
mod rubric;
mod votes;

pub use agent::{Agent, modes, policy};
pub use compare::{Comparison, Pair, Preference, Preferred};
pub use error::GenerationError;
pub use generate::{GenerateOptions, generate_with_review};
pub use generation::{Critique, Generate, GenerationInput, GenerationResult, LlmGenerationService};
pub use material::Material;
pub use result::{CriterionResult, Gate, Indeterminate, ReviewPrice, ReviewResult, Verdict};
pub use review::{LlmReviewService, Review};
pub use rubric::{Criterion, Pattern, ReviewRubric, Votes};
pub use votes::THRESHOLD;
