//! The names of types, and suggestions for wrong ones.

use formwork_core::{misspelled, nearest};

use crate::Kind;

/// The types with names.
const KINDS: [(&str, Kind); 6] = [
    ("string", Kind::String),
    ("markdown", Kind::Markdown),
    ("number", Kind::Number),
    ("integer", Kind::Integer),
    ("boolean", Kind::Boolean),
    ("any", Kind::Any),
];

/// Returns the names of the types.
pub(crate) fn types() -> [&'static str; 6] {
    KINDS.map(|(name, _)| name)
}

/// Returns the type of this name.
pub(crate) fn named(word: &str) -> Option<Kind> {
    KINDS.into_iter().find(|(name, _)| *name == word).map(|(_, kind)| kind)
}

/// Returns the name of a type that has one.
pub(crate) fn name_of(kind: &Kind) -> Option<&'static str> {
    KINDS.iter().find(|(_, known)| known == kind).map(|(name, _)| *name)
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
        _ => match nearest(&lower, types()) {
            Some(near) => near,
            None => {
                return format!(
                    "expected {}, a list of alternatives, `{{` or `[` (the text itself is written {})",
                    types().map(|name| format!("`{name}`")).join(", "),
                    serde_json::Value::from(crate::lex::cut(word)),
                );
            }
        },
    };
    format!("did you mean `{other}`?")
}

/// Returns the type that differs from a bare alternative in a single letter.
pub(crate) fn near_type(word: &str) -> Option<&'static str> {
    misspelled(&word.to_lowercase(), types().into_iter().filter(|name| name.len() > 3), 1)
}
