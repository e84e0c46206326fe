//! Rules that a schema brings, or a file beside it.

use std::path::Path;

use formwork_core::Rule;
use serde_json::Value;

use crate::exit::Failed;
use crate::files;

/// The member of a schema that holds its rules.
pub(crate) const KEYWORD: &str = "x-formwork-rules";

/// Takes the rules out of a schema, in their order; a schema that has none stays as it is.
///
/// # Errors
/// One line that names the rule that cannot be read.
pub(crate) fn take(schema: &mut Value) -> Result<Vec<Rule>, String> {
    let Some(rules) = schema.as_object_mut().and_then(|schema| schema.remove(KEYWORD)) else {
        return Ok(Vec::new());
    };
    read(rules, &format!("#/{KEYWORD}"))
}

/// Takes the rules out of the schema of a file.
pub(crate) fn of_schema(schema: &mut Value, path: &Path) -> Result<Vec<Rule>, Failed> {
    take(schema).map_err(|message| Failed::usage(format!("{}: {message}", files::name(path))))
}

/// The rules of a file: a JSON array of them, as `schemas/rules.json` says.
pub(crate) fn of_file(path: &Path) -> Result<Vec<Rule>, Failed> {
    read(files::json(path)?, "#")
        .map_err(|message| Failed::usage(format!("{}: {message}", files::name(path))))
}

fn read(rules: Value, place: &str) -> Result<Vec<Rule>, String> {
    let Value::Array(rules) = rules else { return Err(format!("{place}: expected an array of rules")) };
    let rule = |(nth, rule)| serde_json::from_value(rule).map_err(|error| format!("{place}/{nth}: {error}"));
    rules.into_iter().enumerate().map(rule).collect()
}
