//! The profiles of an evaluation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rules by which a document is scored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Profile {
    /// The share of right leaves among those that the gold or the answer states; 1 if there are none. The schema says how a leaf is
    /// compared ([`Compare`](formwork_evidence::Compare)); texts are compared without case, white space and punctuation
    /// by default. Items of lists are assigned to each other so that as many leaves as possible are right.
    #[default]
    Default,
    /// The rules of the scorer of DocuBench.
    Docubench,
}
