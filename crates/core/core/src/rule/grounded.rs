//! The rule `grounded`: a value stands in the input.

use std::cell::OnceCell;

use formwork_evidence::Index;
use formwork_json::JsonPath;
use serde_json::Value;

use crate::{Report, Stage, Violation, cut};

/// The maximum length of the quoted nearest text in characters.
const MAX_NEAREST: usize = 80;

/// The text that an answer is about, indexed for the first rule that needs it.
pub(crate) struct SourceIndex<'t> {
    text: &'t str,
    index: OnceCell<Index<'t>>,
}

impl<'t> SourceIndex<'t> {
    pub(crate) const fn new(text: &'t str) -> Self {
        Self { text, index: OnceCell::new() }
    }
}

/// Adds a violation for each text and number at or below `path` that does not stand in the source.
pub(super) fn validate(
    path: &JsonPath,
    found: &Value,
    min_length: usize,
    source: &SourceIndex<'_>,
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
            let index = source.index.get_or_init(|| Index::new(source.text));
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
