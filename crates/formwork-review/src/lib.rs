//! Reviews what a model made against a rubric, and has it made again with the critique.
//!
//! A [`ReviewRubric`] has criteria. Each is judged alone: by a rule, a JSON Schema or a pattern where one can decide it,
//! by one call of a model where not. The model reasons first, then says pass or fail and how sure it is (0 to 100);
//! *indeterminate* is derived, never asked for: below [`THRESHOLD`], where data is missing that the criterion needs, and
//! where the criterion asks for a person. Indeterminate criteria alone never fail a review.
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
//!     .with_criterion(Criterion::new("tone", "The tone suits our brand.").for_people());
//! let reviewer = LlmReviewService::new(Agent::new([Arc::new(judge).into()]));
//! let review = reviewer.review(json!({"title": "Crash", "steps": ["Open the file"]}), &rubric).await?;
//! assert!(review.pass && review.issues.is_empty());
//! assert_eq!(review.indeterminate, ["tone: The tone suits our brand. (a person has to judge this)"]);
//! assert_eq!(review.criteria_results[0].verdict, Verdict::Pass);
//! # Ok(()) }
//! ```
//!
//! - [`LlmReviewService`] reviews against a rubric and compares two outputs, in both orders.
//! - [`LlmGenerationService`] generates JSON for a schema; [`generate_with_review`] reviews that and, if it is told to,
//!   has it generated once more with the critique.
//! - [`Agent`] says how models are asked: the rules of the agent layer. Retries, waits and feedback are those of
//!   [`Run`](formwork_core::Run); there is no other loop here.
//! - [`document`] reads rubrics and other files that people write, with the places of their mistakes.
//!
//! # Embedding
//! `examples/embed-review.rs` uses this crate alone; docs/ARCHITECTURE.md says how many crates come with it.

mod agent;
mod aggregate;
mod answer;
mod compare;
mod contradiction;
mod decide;
pub mod document;
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
pub use generate::{GenerateOptions, generate_with_review};
pub use generation::{
    Critique, Generate, GenerationError, GenerationInput, GenerationResult, LlmGenerationService,
};
pub use material::Material;
pub use result::{CriterionResult, Indeterminate, ReviewPrice, ReviewResult, Verdict};
pub use review::{LlmReviewService, Review};
pub use rubric::{Criterion, Pattern, ReviewRubric, Votes};
pub use votes::THRESHOLD;
