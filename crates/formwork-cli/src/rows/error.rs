use formwork_core::Violation;
use formwork_json::ReadError;
use formwork_schema::SchemaError;
use schemars::JsonSchema;
use serde::Serialize;

/// The reason why a row has no answer.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "class", rename_all = "snake_case")]
pub enum RowError {
    /// The text cannot be read.
    Unreadable {
        /// In words.
        message: String,
        /// For programs.
        reason: ReadError,
    },
    /// The document does not satisfy the schema.
    Invalid {
        /// In words.
        message: String,
        /// All that is wrong with it.
        violations: Vec<Violation>,
    },
    /// The schema cannot be used.
    Schema {
        /// In words.
        message: String,
        /// For programs.
        reason: SchemaError,
    },
    /// The row is not what the command takes.
    Row {
        /// In words, with the line.
        message: String,
    },
}

impl From<ReadError> for RowError {
    fn from(reason: ReadError) -> Self {
        Self::Unreadable { message: reason.to_string(), reason }
    }
}

impl From<SchemaError> for RowError {
    fn from(reason: SchemaError) -> Self {
        Self::Schema { message: reason.to_string(), reason }
    }
}

impl From<Vec<Violation>> for RowError {
    fn from(violations: Vec<Violation>) -> Self {
        let first = violations.first().map(ToString::to_string).unwrap_or_default();
        let message = match violations.len() {
            0 | 1 => first,
            n => format!("{first} (and {} more)", n - 1),
        };
        Self::Invalid { message, violations }
    }
}
