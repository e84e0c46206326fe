//! Rules in a schema, or in a separate file.

use std::path::Path;
use std::sync::Arc;

use formwork_core::{Contract, Inline, RULES, Rule, Rules};
use formwork_schema::Compiled;
use serde_json::Value;

use crate::exit::Failed;
use crate::files;

/// A rule with its location.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    pub(crate) rule: Rule,
    /// The location as a JSON Pointer, after the name of the file if there is one: `invoice.rules.json: #/2`.
    pub(crate) place: String,
}

impl Placed {
    /// Returns the rule, with the rule of its name if it is one from outside.
    ///
    /// # Errors
    /// One line with the location of the rule and the most similar name, if there is no such rule.
    pub(crate) fn resolved(self, known: &Rules) -> Result<Rule, String> {
        let Self { mut rule, place } = self;
        if let Rule::Custom(custom) = &mut rule {
            custom.resolve(known).map_err(|message| format!("{place}: {message}"))?;
        }
        Ok(rule)
    }

    /// Checks the paths of the rule.
    ///
    /// # Errors
    /// One line with the location of the rule, if the schema allows no value at one of its paths.
    pub(crate) fn check(&self, compiled: &Arc<Compiled>) -> Result<(), String> {
        // Paths are checked against the compiled schema, so the text of the schema is not needed.
        let schema = Arc::new(Inline::new("schema", Value::Bool(true)));
        let contract = Contract::new(schema, compiled.clone()).with_rule(self.rule.clone());
        contract.check_paths().map_err(|error| format!("{}: {}", self.place, error.message()))
    }
}

/// Removes the rules from a schema and returns them in their order.
///
/// # Errors
/// One line with the location of the first invalid rule.
pub(crate) fn take(schema: &mut Value) -> Result<Vec<Placed>, String> {
    take_at(schema, "")
}

/// Removes the rules from the schema of a file and returns them.
///
/// # Errors
/// The errors of [`take`], with the name of the file.
pub(crate) fn of_schema(schema: &mut Value, path: &Path) -> Result<Vec<Placed>, Failed> {
    take_at(schema, &format!("{}: ", files::name(path))).map_err(Failed::usage)
}

/// Reads the rules of a file: a JSON array of rules, as described by `schemas/rules.json`.
///
/// # Errors
/// The errors of [`take`], with the name of the file.
pub(crate) fn of_file(path: &Path) -> Result<Vec<Placed>, Failed> {
    read(files::json(path)?, &format!("{}: #", files::name(path))).map_err(Failed::usage)
}

fn take_at(schema: &mut Value, file: &str) -> Result<Vec<Placed>, String> {
    match schema.as_object_mut().and_then(|schema| schema.remove(RULES)) {
        Some(rules) => read(rules, &format!("{file}#/{RULES}")),
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
