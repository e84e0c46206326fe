//! Converts a shape to JSON Schema.

use serde_json::{Map, Value, json};

use crate::{Kind, Node};

/// The media type of Markdown (RFC 7763).
pub(crate) const MARKDOWN: &str = "text/markdown";

/// Returns the equivalent JSON Schema, draft 2020-12.
pub(crate) fn schema(node: &Node) -> Value {
    let mut out = Map::new();
    let mut put = |keyword: &str, value: Value| out.insert(keyword.to_owned(), value);
    let name = match &node.kind {
        Kind::Any | Kind::OneOf(_) => None,
        Kind::String | Kind::Markdown | Kind::Date => Some("string"),
        Kind::Number => Some("number"),
        Kind::Integer => Some("integer"),
        Kind::Boolean => Some("boolean"),
        Kind::Array(_) => Some("array"),
        Kind::Object(_) => Some("object"),
    };
    if let Some(name) = name {
        put("type", if node.nullable { json!([name, "null"]) } else { json!(name) });
    }
    match &node.kind {
        Kind::Markdown => {
            put("contentMediaType", json!(MARKDOWN));
        }
        Kind::Date => {
            put("format", json!("date"));
        }
        Kind::OneOf(values) => {
            if values.iter().all(Value::is_string) {
                put("type", json!("string"));
            }
            match values.as_slice() {
                [only] => put("const", only.clone()),
                many => put("enum", Value::from(many)),
            };
        }
        Kind::Array(item) => {
            put("items", schema(item));
        }
        Kind::Object(fields) => {
            let properties = fields.iter().map(|field| (field.name.clone(), schema(&field.node)));
            put("properties", Value::Object(properties.collect()));
            let required: Vec<_> = fields.iter().filter(|field| !field.optional).collect();
            if !required.is_empty() {
                put("required", required.iter().map(|field| Value::from(field.name.as_str())).collect());
            }
        }
        _ => {}
    }
    if let Some(about) = &node.description {
        put("description", json!(about));
    }
    Value::Object(out)
}
