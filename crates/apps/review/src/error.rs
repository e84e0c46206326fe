use formwork_core::{Error, ErrorKind, Violation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The reason why a generation or a review failed.
///
/// ```
/// use formwork_core::{Error, ErrorKind};
/// use formwork_review::GenerationError;
///
/// let error = GenerationError::from(&Error::new(ErrorKind::Deadline, "60 seconds are over"));
/// assert!(error.kind == ErrorKind::Deadline && !error.answered);
/// assert!(error.message.ends_with("60 seconds are over"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GenerationError {
    /// The class of the error.
    pub kind: ErrorKind,
    /// The message, in one line.
    pub message: String,
    /// The violations of the last answer, if there was an answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<Violation>,
    /// Whether a model completed an answer before the failure; see [`Error::is_answered`].
    #[serde(default)]
    pub answered: bool,
}

impl GenerationError {
    /// Returns the error for answers of a model that cannot be used.
    pub(crate) const fn unusable(message: String) -> Self {
        Self { kind: ErrorKind::Rejected, message, violations: Vec::new(), answered: true }
    }
}

impl From<&Error> for GenerationError {
    fn from(error: &Error) -> Self {
        let last = error.calls().iter().rev().find_map(|call| call.verdict.failure());
        let violations = last.map(|failure| failure.violations().to_vec()).unwrap_or_default();
        Self { kind: error.kind(), message: error.to_string(), violations, answered: error.is_answered() }
    }
}
