//! Builds the validator of a schema, and explains why a schema has none.

use formwork_core::keywords::find;
use formwork_core::{is_old_draft, nearest};
use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::{Draft, PatternOptions, ReferencingError, ValidationError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::SchemaError;

/// Whether `format` rejects values. JSON Schema leaves that to the application.
///
/// ```
/// use formwork_schema::{Formats, compile_with};
/// use serde_json::json;
///
/// let compiled = compile_with(&json!({"format": "email"}), Formats::Annotate)?;
/// assert!(compiled.is_valid(&json!("not an address")));
/// # Ok::<(), formwork_schema::SchemaError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Formats {
    /// A known format rejects values that do not have it; unknown formats are ignored. The default, because a contract that
    /// names a format means it.
    #[default]
    Assert,
    /// Formats are ignored.
    Annotate,
}

/// The maximum number of times that a pattern with look-around backtracks on one value.
const BACKTRACK_LIMIT: usize = 10_000;

pub(crate) fn build(schema: &Value, formats: Formats) -> Result<jsonschema::Validator, SchemaError> {
    if !schema.is_object() && !schema.is_boolean() {
        return Err(SchemaError {
            pointer: String::new(),
            message: "a schema is an object, or true or false".to_owned(),
        });
    }
    let options = || {
        let options = jsonschema::options()
            .offline()
            .should_validate_formats(formats == Formats::Assert)
            .should_ignore_unknown_formats(true);
        match schema.get("$schema") {
            None if is_old_draft(schema) => options.with_draft(Draft::Draft7),
            _ => options,
        }
    };
    options().with_pattern_options(PatternOptions::regex()).build(schema).or_else(|error| {
        let backtracking = PatternOptions::fancy_regex().backtrack_limit(BACKTRACK_LIMIT);
        // The first error is more helpful: the second attempt only accepts other patterns.
        options().with_pattern_options(backtracking).build(schema).map_err(|_| unusable(schema, &error))
    })
}

fn unusable(schema: &Value, error: &ValidationError<'_>) -> SchemaError {
    let pointer = error.instance_path().to_string();
    let message = match error.kind() {
        Kind::Referencing(reason) => return unresolved(schema, reason, pointer),
        kind => {
            let value = schema.pointer(&pointer).unwrap_or(&Value::Null);
            mistake(&pointer, kind, value).unwrap_or_else(|| crate::words::capped(&error.to_string()))
        }
    };
    SchemaError { pointer, message }
}

/// Returns the expected and the found value of a keyword, where the meta-schema only says that it is invalid.
fn mistake(pointer: &str, kind: &Kind, value: &Value) -> Option<String> {
    /// The types of JSON Schema 2020-12 validation, section 6.1.1.
    const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

    if pointer.ends_with("/type") && matches!(kind, Kind::AnyOf { .. }) {
        let all = TYPES.join(", ");
        let mut words = value.as_array().into_iter().flatten().chain([value]).filter_map(Value::as_str);
        return Some(match words.find(|word| !TYPES.contains(word)) {
            Some(word) => match nearest(word, TYPES) {
                Some(meant) => format!("there is no type `{word}`: did you mean `{meant}`? There are {all}"),
                None => format!("there is no type {}; there are {all}", crate::words::quoted(&word.into())),
            },
            None => format!(
                "expected a type or a list of different types ({all}), found {}",
                crate::words::quoted(value)
            ),
        });
    }
    let is_told = matches!(
        kind,
        Kind::Type { .. } | Kind::Enum { .. } | Kind::Minimum { .. } | Kind::ExclusiveMinimum { .. }
    );
    is_told.then(|| {
        let (expected, found) = crate::shape::words(kind, value);
        format!("expected {expected}, found {found}")
    })
}

/// Returns the error for a `$schema` that is unknown, or a `$ref` without a target, at the keyword. `root` is the place of any other
/// reason.
fn unresolved(schema: &Value, reason: &ReferencingError, root: String) -> SchemaError {
    if let (ReferencingError::UnknownSpecification { .. }, Some(uri)) = (reason, schema.get("$schema")) {
        let message = format!(
            "there is no meta-schema {}: remove `$schema`, or write \"https://json-schema.org/draft/2020-12/schema\"",
            crate::words::quoted(uri)
        );
        return SchemaError { pointer: "/$schema".to_owned(), message };
    }
    if let Some((pointer, uri)) = reference(schema, |uri| !uri.starts_with('#')) {
        let message =
            format!("`$ref` to another document ({uri}): nothing is fetched, copy its schema into `$defs`");
        return SchemaError { pointer, message };
    }
    let target = match reason {
        ReferencingError::PointerToNowhere { pointer: target }
        | ReferencingError::NoSuchAnchor { anchor: target } => target,
        other => return SchemaError { pointer: root, message: other.to_string() },
    };
    match reference(schema, |uri| uri.strip_prefix('#') == Some(target)) {
        Some((pointer, uri)) => {
            let message = format!("`$ref` to {uri}: nothing is there, add a schema or correct the reference");
            SchemaError { pointer, message }
        }
        None => SchemaError { pointer: root, message: reason.to_string() },
    }
}

/// Returns the place and the target of the first `$ref` that fulfils a condition.
fn reference(schema: &Value, is_meant: impl Fn(&str) -> bool) -> Option<(String, String)> {
    let mut uri = None;
    let pointer = find(schema, |part| {
        uri = part.get("$ref").and_then(Value::as_str).filter(|uri| is_meant(uri));
        uri.is_some()
    })?;
    Some((format!("{pointer}/$ref"), crate::words::capped(uri?)))
}
