//! The result of a gate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A gate, with the value of the evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateResult {
    /// The condition.
    pub gate: String,
    /// The score or the accuracy.
    pub value: f64,
    /// Whether the condition holds.
    pub ok: bool,
}
