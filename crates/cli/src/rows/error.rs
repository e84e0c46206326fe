use formwork_core::{Report, Violation};
use formwork_json::ReadError;
use formwork_schema::SchemaError;
use schemars::JsonSchema;
use serde::Serialize;

/// The reason why a row failed.
///
/// ```
/// use formwork_cli::rows::RowError;
///
/// let error = RowError::Row { message: "rows.jsonl:3: missing field `data`".into() };
/// assert_eq!(serde_json::to_value(error)?["class"], "row");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "class", rename_all = "snake_case")]
pub enum RowError {
    /// The text cannot be read.
    Unreadable {
        /// The message for people.
        message: String,
        /// The reason for programs.
        reason: ReadError,
    },
    /// The document does not satisfy the schema.
    Invalid {
        /// The message for people.
        message: String,
        /// The violations of the document: the first 512.
        violations: Vec<Violation>,
        /// The number of all violations.
        total: usize,
    },
    /// The schema is invalid.
    Schema {
        /// The message for people.
        message: String,
        /// The reason for programs.
        reason: SchemaError,
    },
    /// The row is invalid.
    Row {
        /// The message for people, with the line.
        message: String,
    },
}

impl RowError {
    /// Returns the message for people.
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Unreadable { message, .. }
            | Self::Invalid { message, .. }
            | Self::Schema { message, .. }
            | Self::Row { message } => message,
        }
    }
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

impl From<Report> for RowError {
    fn from(report: Report) -> Self {
        let violations = report.violations().to_vec();
        let first = violations.first().map(ToString::to_string).unwrap_or_default();
        let total = violations.len() + report.left_out();
        let message = if total > 1 { format!("{first} (and {} more)", total - 1) } else { first };
        Self::Invalid { message, violations, total }
    }
}
