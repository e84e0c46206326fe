use std::fmt;

use formwork_core::Severity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A likely mistake in a schema, found by [`lint`](crate::lint).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LintFinding {
    /// RFC 6901 JSON Pointer into the schema.
    pub pointer: String,
    /// The severity: an error makes the schema useless, a warning is most likely a mistake.
    pub severity: Severity,
    /// The mistake, and what to write instead.
    pub message: String,
}

impl fmt::Display for LintFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = if self.severity == Severity::Error { "error" } else { "warning" };
        write!(f, "{severity}: #{}: {}", self.pointer, self.message)
    }
}
