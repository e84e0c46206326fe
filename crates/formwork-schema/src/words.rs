//! What was expected and what was found, in words.

use std::fmt::{self, Display};

use serde_json::Value;

/// The type of a value as JSON Schema calls it; whole numbers are numbers like others.
pub(crate) const fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A value for a message: scalars as JSON, containers by their type.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => type_name(value).to_owned(),
        scalar => scalar.to_string(),
    }
}

/// `a`, `a or b`, `a, b or c`; at most [`MAX_LISTED`] of them.
pub(crate) fn either(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        many if many.len() > MAX_LISTED => {
            format!(
                "{} or {} more",
                many.iter().take(MAX_LISTED).cloned().collect::<Vec<_>>().join(", "),
                many.len() - MAX_LISTED
            )
        }
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

const MAX_LISTED: usize = 12;

/// `1 item`, `2 items`.
pub(crate) fn count(number: impl Into<u64>, unit: &str) -> impl Display {
    let number = number.into();
    fmt::from_fn(move |f| write!(f, "{number} {unit}{}", if number == 1 { "" } else { "s" }))
}

/// The first part of a long text.
pub(crate) fn capped(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARACTERS) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
    }
}

const MAX_CHARACTERS: usize = 300;
