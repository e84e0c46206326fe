//! The names of types, and suggestions for wrong ones.

use formwork_core::{misspelled, nearest};

use crate::Kind;

/// The types with names.
pub(crate) const TYPES: [&str; 6] = ["string", "markdown", "number", "integer", "boolean", "any"];

/// Returns the type of this name.
pub(crate) fn named(word: &str) -> Option<Kind> {
    Some(match word {
        "string" => Kind::String,
        "markdown" => Kind::Markdown,
        "number" => Kind::Number,
        "integer" => Kind::Integer,
        "boolean" => Kind::Boolean,
        "any" => Kind::Any,
        _ => return None,
    })
}

/// Returns the correction for a word that is not a type.
pub(crate) fn advice(word: &str) -> String {
    let lower = word.to_lowercase();
    let other = match lower.as_str() {
        "str" | "text" | "char" | "varchar" | "date" | "datetime" | "uuid" | "url" | "email" => "string",
        "md" => "markdown",
        "int" | "int32" | "int64" | "i32" | "i64" | "u32" | "u64" | "long" | "uint" => "integer",
        "float" | "double" | "decimal" | "f32" | "f64" | "num" | "real" => "number",
        "bool" | "flag" => "boolean",
        "json" | "unknown" | "map" | "dict" | "record" => "any",
        "object" => return "an object is written with its fields: `{\"name\": string}`".to_owned(),
        "array" | "list" | "vec" | "set" | "tuple" => return "an array is written `[string]`".to_owned(),
        "enum" | "oneof" | "union" => return "alternatives are written `\"low\" | \"high\"`".to_owned(),
        "optional" | "option" | "nullable" | "maybe" | "required" => {
            return "a field that may be left out is written `\"name\"?: string`, one that may be null \
                    `string | null`"
                .to_owned();
        }
        _ => match nearest(&lower, TYPES) {
            Some(near) => near,
            None => {
                return format!(
                    "expected {}, a list of alternatives, `{{` or `[` (the text itself is written {})",
                    TYPES.map(|name| format!("`{name}`")).join(", "),
                    serde_json::Value::from(crate::lex::cut(word)),
                );
            }
        },
    };
    format!("did you mean `{other}`?")
}

/// Returns the type that differs from a bare alternative in a single letter.
pub(crate) fn near_type(word: &str) -> Option<&'static str> {
    misspelled(&word.to_lowercase(), TYPES.into_iter().filter(|name| name.len() > 3), 1)
}
