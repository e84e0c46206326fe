//! The names of types, and suggestions for wrong ones.

use formwork_core::{misspelled, nearest};

use crate::Kind;

/// The types with names.
const KINDS: [(&str, Kind); 7] = [
    ("string", Kind::String),
    ("markdown", Kind::Markdown),
    ("number", Kind::Number),
    ("integer", Kind::Integer),
    ("boolean", Kind::Boolean),
    ("date", Kind::Date),
    ("any", Kind::Any),
];

/// Short names of types, with the names that they stand for.
const SHORT: [(&str, &str); 4] =
    [("int", "integer"), ("float", "number"), ("bool", "boolean"), ("str", "string")];

/// Returns the names of the types.
pub(crate) fn types() -> [&'static str; 7] {
    KINDS.map(|(name, _)| name)
}

/// Returns the type of this name or short name.
pub(crate) fn named(word: &str) -> Option<Kind> {
    let word = SHORT.iter().find(|(short, _)| *short == word).map_or(word, |(_, name)| name);
    KINDS.into_iter().find(|(name, _)| *name == word).map(|(_, kind)| kind)
}

/// Returns the type of a word that is a literal beside other literals: `date | time` are two texts.
pub(crate) fn alone(word: &str) -> Option<Kind> {
    match word {
        "text" => Some(Kind::String),
        "date" => Some(Kind::Date),
        _ => None,
    }
}

/// Returns the name of a type that has one.
pub(crate) fn name_of(kind: &Kind) -> Option<&'static str> {
    KINDS.iter().find(|(_, known)| known == kind).map(|(name, _)| *name)
}

/// Returns the correction for a word that is not a type.
pub(crate) fn advice(word: &str) -> String {
    let lower = word.to_lowercase();
    let other = match lower.as_str() {
        "char" | "varchar" | "datetime" | "uuid" | "url" | "email" => "string",
        "md" => "markdown",
        "int32" | "int64" | "i32" | "i64" | "u32" | "u64" | "long" | "uint" => "integer",
        "double" | "decimal" | "f32" | "f64" | "num" | "real" => "number",
        "flag" => "boolean",
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

/// Returns the type that differs from a bare alternative in a single letter. Short names, `date` among them, are like
/// too many words.
pub(crate) fn near_type(word: &str) -> Option<&'static str> {
    misspelled(&word.to_lowercase(), types().into_iter().filter(|name| name.len() > 4), 1)
}
