//! Uses this crate alone: lists all violations of a document, and the mistakes in the schema itself.
//!
//! `cargo run -p formwork-schema --example embed-schema`

use formwork_core::{Context, Report, Validator};
use formwork_schema::{SchemaError, compile, lint};
use serde_json::json;

fn main() -> Result<(), SchemaError> {
    let schema = json!({
        "type": "object",
        "properties": {"age": {"type": "integer", "maximun": 150}, "risks": {"items": {"type": "string"}}},
        "required": ["name"],
    });
    let mut report = Report::default();
    compile(&schema)?.validate(&json!({"age": "34", "risks": [123]}), &Context::EMPTY, &mut report);
    for violation in report.violations() {
        println!("{violation}");
    }
    for finding in lint(&schema) {
        println!("lint: {finding}");
    }
    Ok(())
}
