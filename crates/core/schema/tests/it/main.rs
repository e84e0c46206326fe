//! The violations that schemas report, with their exact messages.

#![expect(clippy::unwrap_used, reason = "a test may simply fail")]

mod absence;
mod coercion;
mod compare;
mod hostile;
mod lints;
mod request;
mod structure;
mod words;

use formwork_core::{Context, Report, Validator, Violation};
use formwork_schema::compile;
use serde_json::Value;

fn violations(schema: &Value, value: &Value) -> Vec<Violation> {
    let mut report = Report::default();
    compile(schema).unwrap().validate(value, &Context::EMPTY, &mut report);
    report.violations().to_vec()
}

fn messages(schema: &Value, value: &Value) -> Vec<String> {
    violations(schema, value).iter().map(ToString::to_string).collect()
}
