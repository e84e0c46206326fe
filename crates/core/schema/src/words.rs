//! Describes expected and found values in messages.

use std::borrow::Borrow;
use std::fmt::{Display, Write as _};

use formwork_core::cut;
use formwork_core::keywords::type_name;
use jsonschema::error::TypeKind;
use serde_json::Value;

/// Returns a value for a message: scalars as JSON, containers by their type.
pub(crate) fn quoted(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => type_name(value).to_owned(),
        Value::Number(number) => number.to_string(),
        scalar => scalar.to_string(),
    }
}

/// Returns `a`, `a or b`, `a, b or c`, with at most [`MAX_LISTED`] names.
pub(crate) fn either(words: &[impl Borrow<str>]) -> String {
    let list = |words: &[_]| words.join(", ");
    match words.split_at_checked(MAX_LISTED) {
        Some((first, rest @ [_, ..])) => format!("{} or {} more", list(first), rest.len()),
        _ => match words {
            [] => String::new(),
            [only] => only.borrow().to_owned(),
            [first @ .., last] => format!("{} or {}", list(first), last.borrow()),
        },
    }
}

const MAX_LISTED: usize = 12;

pub(crate) fn type_names(kind: &TypeKind) -> Vec<&'static str> {
    match kind {
        TypeKind::Single(name) => vec![name.as_str()],
        TypeKind::Multiple(names) => names.iter().map(|name| name.as_str()).collect(),
    }
}

/// Returns a bound with a prefix: `at least 0.5`.
pub(crate) fn bound(before: &str, limit: &impl Display) -> String {
    let mut words = String::with_capacity(before.len() + SPACE);
    _ = write!(words, "{before}{limit}");
    words
}

/// Returns a number with a prefix and a unit: `at least 1 item`; `2 items` with an empty prefix.
pub(crate) fn count(before: &str, number: impl Into<u64>, unit: &str) -> String {
    let number = number.into();
    let mut words = bound(before, &number);
    words.push(' ');
    words.push_str(unit);
    if number != 1 {
        words.push('s');
    }
    words
}

/// The usual length of a number and its unit.
const SPACE: usize = 32;

/// Cuts a long text.
pub(crate) fn capped(text: &str) -> String {
    cut(text, MAX_CHARACTERS).into_owned()
}

const MAX_CHARACTERS: usize = 300;
