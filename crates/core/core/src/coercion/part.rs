//! The place of a value, and the parts of conversions that all levels share.

use formwork_json::{JsonPath, rounded};
use serde_json::{Number, Value};

use super::declared::Coercion;
use crate::Segment;

/// The place of a value: its path, its path in the text, and the coercion there.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) at: JsonPath,
    pub(super) origin: Option<JsonPath>,
    pub(super) coercion: Coercion,
}

impl Place {
    pub(super) fn below(&self, segment: Segment) -> Self {
        let origin = self.origin.as_ref().map(|origin| origin.child(segment.clone()));
        Self { at: self.at.child(segment), origin, coercion: self.coercion }
    }
}

/// Returns the types that a schema names.
pub(super) fn types(part: &Value) -> Vec<&str> {
    let one = part["type"].as_str();
    one.into_iter().chain(part["type"].as_array().into_iter().flatten().filter_map(Value::as_str)).collect()
}

/// Returns the number that a text is, if a [`Value`] holds it exactly.
pub(super) fn number(text: &str) -> Option<Number> {
    let begins = text.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    let number = serde_json::from_str(text).ok().filter(|_| begins)?;
    rounded(text).is_empty().then_some(number)
}
