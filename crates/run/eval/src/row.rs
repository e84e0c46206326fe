//! The score of a row.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The score of one document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RowScore {
    /// The `id` of the gold row.
    pub id: Value,
    /// The score, from 0 to 1.
    pub score: f64,
}
