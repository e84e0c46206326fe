//! Scores wallets with a language model, and validates every score.
//!
//! - [`Oracle`] scores wallets. The schema is enforced while the model decodes. Every answer is validated, and
//!   cross-checked against its own breakdown. After at most three attempts at falling temperatures the [`fallback`]
//!   answers, so there is always a score, with its source. Wrong values are rejected, never clamped.
//! - [`AiScore`] is the answer, [`AI_RESPONSE_SCHEMA`] its schema, [`CrossCheck`] the formula as data.
//! - [`Prompt`] is a version of the instructions, [`Examples`] a validated set of examples. Every score carries a hash of
//!   both.
//! - [`calibration`] measures whether a model's scores are nearer to those of people than the fallback's.
//! - [`ScoreEvent`] is the history of a score, for metrics, ledgers and reports.

mod builder;
pub mod calibration;
mod check;
mod contract;
mod event;
mod examples;
pub mod fallback;
pub mod ledger;
mod log;
pub mod metrics;
mod oracle;
mod order;
mod prompt;
pub mod report;
mod score;
mod scored;
mod seed;
#[cfg(feature = "serve")]
pub mod service;
mod source;
mod standing;
mod texts;
pub mod wallet;

pub use builder::{DEFAULT_DEADLINE, DEFAULT_MAX_TOKENS, OracleBuilder, policy};
pub use check::{CROSS_CHECK, CrossCheck, Formula, TOLERANCE};
pub use contract::contract;
pub use event::{CrossChecks, Rejection, ScoreEvent, ScoreFailure, ScoreObserver};
pub use examples::{Example, Examples, ExamplesError, MAX_EXAMPLES};
pub use oracle::{Oracle, ScoreRequest};
pub use prompt::{MAX_PROMPT, Prompt, PromptError, PromptId};
pub use score::{AI_RESPONSE_SCHEMA, AiScore, SCHEMA_NAME, ScoreBreakdown};
pub use scored::Scored;
pub use source::ScoreSource;
