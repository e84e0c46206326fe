//! Calls and their parameters.

use formwork_core::{
    Call, Completion, Context, Enforcement, Fault, Lowered, Message, Provider, Report, Sampling,
    Validator as _,
};
use formwork_local::{Local, LocalOptions, Restraint, Store};
use serde_json::{Value, json};

use crate::tiny::Tiny;

/// Returns a call for a document of a schema.
pub(crate) fn call(schema: Option<Value>, text: &str) -> Call {
    let enforcement = if schema.is_some() { Enforcement::Schema } else { Enforcement::None };
    Call::new(vec![Message::user(text)], Lowered::new(enforcement, schema)).with_schema_name("document")
}

/// Adds a temperature of 1, a seed and a token limit.
pub(crate) fn drawn(mut call: Call, seed: u64, max_tokens: u32) -> Call {
    call.sampling = Sampling::default().with_temperature(1.0).with_seed(seed);
    call.max_tokens = Some(max_tokens);
    call
}

pub(crate) async fn answer(local: &Local, call: &Call) -> Result<Completion, Fault> {
    local.call(call).await?.collect().await
}

pub(crate) fn person() -> Value {
    json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "city": {"type": "string"}},
        "required": ["name", "age", "city"],
        "additionalProperties": false,
    })
}

/// Returns whether a value satisfies a schema.
pub(crate) fn fits(schema: &Value, value: &Value) -> bool {
    let mut report = Report::default();
    formwork_schema::compile(schema).unwrap().validate(value, &Context::EMPTY, &mut report);
    report.is_empty()
}

/// A model with random weights.
pub(crate) fn tiny(architecture: &'static str, restraint: Restraint) -> Local {
    let folder = tempfile::tempdir().unwrap();
    let path = Tiny::new(architecture).write(folder.path());
    let options = LocalOptions::new().with_model(path.to_str().unwrap()).with_store(Store::at(folder.path()));
    Local::open(options.with_restraint(restraint)).unwrap()
}
