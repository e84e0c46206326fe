//! Scores wallets with a language model, so that the score can be trusted.
//!
//! - [`Oracle`] asks for a score: schema enforced while decoding, every answer judged and cross-checked against its own
//!   breakdown, at most three attempts at falling temperatures, then the [`fallback`]. There is always a score, and it
//!   says where it comes from. Nothing is ever clamped.
//! - [`AiScore`] is the answer, [`AI_RESPONSE_SCHEMA`] its schema, [`CrossCheck`] the formula as data.
//! - [`Prompt`] is a version of the instructions, [`Examples`] a checked set of examples; both are in the hash that every
//!   score carries.
//! - [`ScoreEvent`] is what a score leaves behind, for metrics, ledgers and reports.

mod builder;
mod check;
mod contract;
mod event;
mod examples;
pub mod fallback;
pub mod ledger;
mod log;
pub mod metrics;
mod oracle;
mod prompt;
pub mod report;
mod score;
mod scored;
mod seed;
#[cfg(feature = "serve")]
pub mod service;
pub mod wallet;

pub use builder::{DEFAULT_DEADLINE, DEFAULT_MAX_TOKENS, OracleBuilder, policy};
pub use check::{CROSS_CHECK, CrossCheck, Formula, TOLERANCE};
pub use contract::contract;
pub use event::{CrossChecks, Rejection, ScoreEvent, ScoreFailure, ScoreObserver};
pub use examples::{Example, Examples, ExamplesError, MAX_EXAMPLES};
pub use oracle::{Oracle, ScoreRequest};
pub use prompt::{MAX_PROMPT, Prompt, PromptError};
pub use score::{AI_RESPONSE_SCHEMA, AiScore, SCHEMA_NAME, ScoreBreakdown};
pub use scored::{PromptId, ScoreSource, Scored};
