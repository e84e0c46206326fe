use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The source of a score.
///
/// ```
/// assert_eq!(formwork_oracle::ScoreSource::Fallback.as_str(), "fallback");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScoreSource {
    /// A model.
    Ai,
    /// The rule that counts transactions; see [`fallback`](crate::fallback).
    Fallback,
}

impl ScoreSource {
    /// Returns the name in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ai => "ai",
            Self::Fallback => "fallback",
        }
    }
}
