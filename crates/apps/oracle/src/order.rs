//! The order in which models write the members of an answer.

use serde_json::{Map, Value};

/// Moves `scoreBreakdown` before `score`, so that a model writes the terms before their sum.
pub(crate) fn breakdown_first(fields: &mut Map<String, Value>) {
    if let Some(breakdown) = fields.shift_remove("scoreBreakdown") {
        fields.shift_insert(0, "scoreBreakdown".to_owned(), breakdown);
    }
}
