use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The reaction of a server to a keyword that it does not support.
///
/// ```
/// assert_eq!(formwork_dialect::Reaction::Forbids.to_string(), "forbids valid answers");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reaction {
    /// The server responds with an error.
    Rejected,
    /// The server ignores the keyword, so that invalid answers are possible.
    Ignored,
    /// The server misreads the keyword, so that some or all valid answers are impossible.
    Forbids,
}

impl fmt::Display for Reaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rejected => "rejected",
            Self::Ignored => "ignored",
            Self::Forbids => "forbids valid answers",
        })
    }
}
