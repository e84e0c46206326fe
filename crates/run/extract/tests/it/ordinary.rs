//! Ordinary long answers arrive complete, in every dialect and in chunks of any size (findings A1 to A4).

use std::sync::Arc;

use formwork_core::*;
use formwork_dialect::{Dialects, lower_value};
use formwork_extract::{Backend, Extractor};
use formwork_testkit::{Reply, Scripted};
use serde_json::{Value, json};

use crate::support::*;

/// Typical schemas, each with a long or repetitive answer.
fn cases() -> Vec<(&'static str, Value, Value)> {
    let list = |items: Value| json!({"type": "object", "properties": {"list": {"type": "array", "items": items}}, "required": ["list"]});
    let line = json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "price": {"type": "number"}, "note": {"type": ["string", "null"]}},
        "required": ["name", "price"]
    });
    let lines: Vec<Value> = (0..100)
        .map(|n| match n % 3 {
            0 => json!({"name": format!("Item {n}"), "price": f64::from(n) + 0.5}),
            1 => json!({"name": format!("Item {n}"), "price": n, "note": null}),
            _ => json!({"name": "Item", "price": 1, "note": "the same"}),
        })
        .collect();
    let tree = json!({
        "$ref": "#/$defs/node",
        "$defs": {"node": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
            "required": ["name"]
        }}
    });
    let deep = (0..12).fold(
        json!({"name": "leaf"}),
        |inner, depth| json!({"name": depth.to_string(), "children": [inner]}),
    );
    let key = "0b2f1a52-4c7e-4d43-9a0e-9f6c1c3f1b77-0b2f1a52-4c7e-4d43-9a0e-9f6c1c3f1b77";
    let ids: serde_json::Map<String, Value> =
        (0..60).map(|n| (format!("{key}-{n}"), json!(1_234_567_890_123_456_789_u64 + n))).collect();
    vec![
        ("a hundred lines", list(line), json!({"list": lines})),
        ("equal flags", list(json!({"type": "boolean"})), json!({"list": vec![true; 100]})),
        (
            "equal words",
            list(json!({"enum": ["positive", "negative"]})),
            json!({"list": vec!["negative"; 100]}),
        ),
        ("nulls", list(json!({"type": ["number", "null"]})), json!({"list": vec![Value::Null; 100]})),
        (
            "a long text",
            list(json!({"type": "string"})),
            json!({"list": [(0..3000).map(|n| format!("word{n} ")).collect::<String>()]}),
        ),
        ("a deep tree", tree, deep),
        (
            "long keys and numbers",
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            Value::Object(ids),
        ),
        (
            "anything",
            json!({"type": "object", "properties": {"any": {}}, "required": ["any"]}),
            json!({"any": vec![json!({"a": {"b": [1, "x", null, {"c": [[]]}]}}); 40]}),
        ),
    ]
}

#[tokio::test]
async fn a_long_answer_arrives_whole_in_every_dialect_and_in_any_pieces() {
    for lower in Dialects::builtin().iter() {
        let name = lower.name();
        for (what, schema, expected) in cases() {
            if name == "json-object" && !expected.is_object() {
                continue;
            }
            let lowered = lower.lower(&LowerRequest::new(&schema)).unwrap();
            let written = match lowered.schema {
                Some(_) => lower_value(&expected, &lowered).unwrap_or_else(|| panic!("{name}: {what}")),
                None => expected.clone(),
            };
            let text = spaced(&written);
            let bytes: Vec<char> = text.chars().collect();
            for size in [bytes.len(), 4] {
                let pieces: Vec<String> = bytes.chunks(size).map(|piece| piece.iter().collect()).collect();
                let model = Arc::new(Scripted::new([Reply::pieces(pieces)]));
                let backend = Backend::from(Arc::clone(&model)).with_mode(lower.clone());
                let extractor =
                    Extractor::for_document("answer", schema.clone()).with_target(backend).build().unwrap();
                let outcome =
                    extractor.extract(TEXT).await.unwrap_or_else(|error| panic!("{name}: {what}: {error:#}"));
                assert_eq!(outcome.value, expected, "{name}: {what} in pieces of {size}");
                assert_eq!((outcome.calls.len(), outcome.closed().count()), (1, 0), "{name}: {what}");
            }
        }
    }
}
