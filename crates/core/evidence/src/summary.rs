//! The counts of evidence.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Evidence, Status};

/// The number of leaves of a value with each status.
///
/// ```
/// use formwork_evidence::{Index, Summary};
/// use serde_json::json;
///
/// let value = json!({"name": "Ada", "age": 36, "city": null, "title": "Dr"});
/// let summary = Summary::of(&Index::new("ada, 36").evidence(&value, None), &value);
/// assert_eq!((summary.exact, summary.normalised, summary.not_found, summary.not_stated), (1, 1, 1, 1));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Summary {
    /// Leaves that stand in the input as they are.
    pub exact: usize,
    /// Leaves that stand in the input in another notation.
    pub normalised: usize,
    /// Leaves that a rule of the schema derives.
    pub computed: usize,
    /// Leaves that were not found.
    pub not_found: usize,
    /// Leaves that state nothing: `null`, and empty texts, lists and objects.
    pub not_stated: usize,
}

impl Summary {
    /// Counts the evidence for a value.
    pub fn of(evidence: &[Evidence], value: &Value) -> Self {
        let mut summary = Self::default();
        for it in evidence {
            let count = match it.status {
                Status::Exact => &mut summary.exact,
                Status::Normalised => &mut summary.normalised,
                Status::Computed => &mut summary.computed,
                Status::NotFound if is_empty(it.path.get(value)) => &mut summary.not_stated,
                Status::NotFound => &mut summary.not_found,
            };
            *count += 1;
        }
        summary
    }
}

fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(members)) => members.is_empty(),
        Some(Value::Bool(_) | Value::Number(_)) => false,
    }
}
