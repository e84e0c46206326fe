//! Calls and what is asked of answers.

use std::sync::Arc;

use formwork_core::{Call, Completion, Enforcement, Fault, Lowered, Message, Provider, Sampling};
use formwork_local::Local;
use serde_json::{Value, json};

/// A call that asks for a document of a schema.
pub(crate) fn call(schema: Option<Value>, text: &str) -> Call {
    let enforcement = if schema.is_some() { Enforcement::Schema } else { Enforcement::None };
    Call {
        messages: vec![Message::user(text)],
        schema_name: "document".to_owned(),
        lowered: Arc::new(Lowered { schema, enforcement, ..Lowered::default() }),
        rules: Vec::new(),
        sampling: Sampling::default(),
        max_tokens: None,
        deadline: None,
        tools: Vec::new(),
    }
}

/// With a temperature of 1, a seed and a bound on tokens.
pub(crate) fn drawn(mut call: Call, seed: u64, max_tokens: u32) -> Call {
    call.sampling = Sampling { temperature: Some(1.0), top_p: None, seed: Some(seed) };
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

/// Whether a value satisfies a schema, as far as the schemas of these tests go.
pub(crate) fn fits(schema: &Value, value: &Value) -> bool {
    let number = |key: &str| schema[key].as_u64().map(|number| number as usize);
    let within = |length: usize, least: &str, most: &str| {
        number(least).is_none_or(|least| length >= least) && number(most).is_none_or(|most| length <= most)
    };
    if let Some(options) = schema["anyOf"].as_array() {
        return options.iter().any(|option| fits(option, value));
    }
    if let Some(options) = schema["enum"].as_array() {
        return options.contains(value);
    }
    match (schema["type"].as_str(), value) {
        (Some("null"), Value::Null)
        | (Some("boolean"), Value::Bool(_))
        | (Some("number"), Value::Number(_)) => true,
        (Some("integer"), Value::Number(_)) => {
            let least = schema["minimum"].as_f64().unwrap_or(f64::MIN);
            let most = schema["maximum"].as_f64().unwrap_or(f64::MAX);
            value.as_f64().is_some_and(|number| number.fract() == 0.0 && (least..=most).contains(&number))
        }
        (Some("string"), Value::String(text)) => within(text.chars().count(), "minLength", "maxLength"),
        (Some("array"), Value::Array(items)) => {
            within(items.len(), "minItems", "maxItems")
                && items.iter().all(|item| fits(&schema["items"], item))
        }
        (Some("object"), Value::Object(members)) => {
            let required = schema["required"].as_array().into_iter().flatten();
            required.filter_map(Value::as_str).all(|key| members.contains_key(key))
                && members.iter().all(|(key, value)| {
                    schema["properties"].get(key).is_some_and(|schema| fits(schema, value))
                })
        }
        _ => false,
    }
}
