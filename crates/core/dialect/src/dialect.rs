use formwork_core::{LintFinding, Lower};
use serde_json::Value;

use crate::Reaction;

/// A dialect of JSON Schema: it lowers schemas for a kind of server, and lints schemas that were not lowered.
///
/// Implement it for a dialect that [`profile`](crate::profile) cannot describe; [`Dialects`](crate::Dialects) has an example.
///
/// ```
/// use formwork_dialect::{Dialect, Native};
///
/// let dialect: &dyn Dialect = &Native::LLAMA_CPP;
/// assert_eq!(dialect.about(), "llama.cpp's server");
/// assert_eq!(dialect.lint(&serde_json::json!({"type": "number", "maximum": 1})).len(), 1);
/// ```
pub trait Dialect: Lower {
    /// Returns the servers that accept the dialect, in one line for people.
    fn about(&self) -> &str;

    /// Returns the parts of a schema that the server would reject, ignore or misread if it were not lowered, in the
    /// order of the document (default: none).
    fn lint(&self, _schema: &Value) -> Vec<LintFinding<Reaction>> {
        Vec::new()
    }
}
