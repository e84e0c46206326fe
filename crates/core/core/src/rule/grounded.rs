//! The rule `grounded`: a value stands in the input.

use std::sync::{Arc, OnceLock};

use formwork_evidence::Index;
use formwork_json::JsonPath;
use serde_json::Value;

use crate::{Report, Stage, Violation, cut};

/// The maximum length of the quoted nearest text in characters.
const MAX_NEAREST: usize = 80;

/// The index of the text that the answers of a run are about, built for the first rule that needs it. Clones share it; it is not
/// stored with the run.
#[derive(Clone, Default)]
pub(crate) struct SourceIndex(Arc<OnceLock<Index<'static>>>);

impl SourceIndex {
    /// Returns the index, of `text` if it was not built before.
    pub(crate) fn get(&self, text: &str) -> &Index<'static> {
        self.0.get_or_init(|| Index::new(text.to_owned()))
    }
}

// Two runs are equal whether or not the text was indexed.
crate::equal::always_equal!(SourceIndex);

crate::debug_fields!(SourceIndex {});

/// Adds a violation for each text and number at or below `path` that does not stand in the source.
pub(super) fn validate(
    path: &JsonPath,
    found: &Value,
    min_length: usize,
    source: (&str, &SourceIndex),
    out: &mut Report,
) {
    match found {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                validate(&path.index(index), item, min_length, source, out);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                validate(&path.key(name), member, min_length, source, out);
            }
        }
        Value::Null | Value::Bool(_) => {}
        Value::String(_) | Value::Number(_) => {
            let index = source.1.get(source.0);
            if index.states(found, min_length) {
                return;
            }
            let kind = if found.is_number() { "a number" } else { "words" };
            // The text of the input is data: it is quoted, and control characters are escaped.
            let nearest = index.nearest(found).map(|text| Value::from(cut(text, MAX_NEAREST)).to_string());
            let nearest =
                nearest.map(|text| format!("; the most similar text is {text}")).unwrap_or_default();
            let violation = Violation::new(path.clone(), "grounded", Stage::Check);
            let expected = format!("{kind} of the source text{nearest}");
            out.push(violation.with_expected(expected).with_found(found.to_string()));
        }
    }
}
