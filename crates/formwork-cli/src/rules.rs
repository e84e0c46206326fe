//! Rules that a schema brings, or a file beside it.

use std::path::Path;
use std::sync::Arc;

use formwork_core::{Contract, Inline, Rule};
use formwork_schema::Compiled;
use serde_json::Value;

use crate::exit::Failed;
use crate::files;

/// The member of a schema that holds its rules.
pub(crate) const KEYWORD: &str = "x-formwork-rules";

/// A rule with the place where it was read.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    pub(crate) rule: Rule,
    /// A JSON Pointer, after the file's name where the rule was read from a file: `invoice.rules.json: #/2`.
    pub(crate) place: String,
}

impl Placed {
    /// Looks at the rule's paths.
    ///
    /// # Errors
    /// One line with the rule's place, where no value of the schema can be at one of its paths.
    pub(crate) fn check(&self, compiled: &Arc<Compiled>) -> Result<(), String> {
        // The text of the schema is not looked at: paths are found in the compiled one.
        let schema = Arc::new(Inline::new("schema", Value::Bool(true)));
        let contract = Contract::new(schema, compiled.clone()).with_rule(self.rule.clone());
        contract.check_paths().map_err(|error| format!("{}: {}", self.place, error.message()))
    }
}

/// Takes the rules out of a schema, in their order; a schema that has none stays as it is.
///
/// # Errors
/// One line that names the rule that cannot be read.
pub(crate) fn take(schema: &mut Value) -> Result<Vec<Placed>, String> {
    take_at(schema, "")
}

/// Takes the rules out of the schema of a file.
///
/// # Errors
/// As [`take`], with the file's name.
pub(crate) fn of_schema(schema: &mut Value, path: &Path) -> Result<Vec<Placed>, Failed> {
    take_at(schema, &format!("{}: ", files::name(path))).map_err(Failed::usage)
}

/// Reads the rules of a file: a JSON array of them, as `schemas/rules.json` says.
///
/// # Errors
/// As [`take`], with the file's name.
pub(crate) fn of_file(path: &Path) -> Result<Vec<Placed>, Failed> {
    read(files::json(path)?, &format!("{}: #", files::name(path))).map_err(Failed::usage)
}

fn take_at(schema: &mut Value, file: &str) -> Result<Vec<Placed>, String> {
    match schema.as_object_mut().and_then(|schema| schema.remove(KEYWORD)) {
        Some(rules) => read(rules, &format!("{file}#/{KEYWORD}")),
        None => Ok(Vec::new()),
    }
}

fn read(rules: Value, place: &str) -> Result<Vec<Placed>, String> {
    let Value::Array(rules) = rules else { return Err(format!("{place}: expected an array of rules")) };
    let placed = |(nth, rule)| {
        let place = format!("{place}/{nth}");
        match serde_json::from_value(rule) {
            Ok(rule) => Ok(Placed { rule, place }),
            Err(error) => Err(format!("{place}: {error}")),
        }
    };
    rules.into_iter().enumerate().map(placed).collect()
}
