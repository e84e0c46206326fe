use std::fmt;

use formwork_core::Severity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something about a schema that its author will not have meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LintFinding {
    /// RFC 6901 JSON Pointer into the schema.
    pub pointer: String,
    /// An error makes the schema useless, a warning is most likely a mistake.
    pub severity: Severity,
    /// The reason, and what to write instead.
    pub message: String,
}

impl fmt::Display for LintFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = if self.severity == Severity::Error { "error" } else { "warning" };
        write!(f, "{severity}: #{}: {}", self.pointer, self.message)
    }
}
