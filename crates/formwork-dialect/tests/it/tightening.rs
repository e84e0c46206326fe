//! What is bounded, by how much, and what is refused.

use formwork_core::Dependency;
use formwork_core::{Lift, LiftOp, Loss, LossKind, Lower as _, LowerRequest, Lowered, Shown};
use formwork_dialect::{Native, Prompt};
use serde_json::{Value, json};

use crate::model::{allows, matcher, sample};

fn lowered(schema: &Value, max_tokens: u32) -> Lowered {
    Native::LLGUIDANCE
        .lower(&LowerRequest { max_tokens: Some(max_tokens), ..LowerRequest::new(schema) })
        .unwrap()
}

#[test]
fn objects_are_closed_and_strings_share_the_tokens() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {"type": "string"}}}, "required": ["a"]});
    let few = lowered(&schema, 100).schema.unwrap();
    let many = lowered(&schema, 2000).schema.unwrap();
    let of = |schema: &Value| {
        (
            schema["properties"]["a"]["maxLength"].as_u64().unwrap(),
            schema["properties"]["b"]["maxItems"].as_u64().unwrap(),
        )
    };
    let ((few_text, few_items), (many_text, many_items)) = (of(&few), of(&many));
    assert!(few_text < many_text && few_items <= many_items, "{few} {many}");
    assert_eq!(few["additionalProperties"], false);
    // The longest document fits.
    assert!(few_text * (few_items + 1) / 3 <= 100, "{few}");
}

#[test]
fn the_receipt_says_what_was_done() {
    let schema = json!({
        "type": "object",
        "properties": {"tags": {"type": "array", "items": {"type": "string", "pattern": "^(?=x)"}, "uniqueItems": true}},
        "if": {"required": ["tags"]}, "then": {"minProperties": 1},
    });
    let losses = lowered(&schema, 500).losses;
    let loss =
        |pointer: &str, keyword: &str, kind| Loss { pointer: pointer.into(), keyword: keyword.into(), kind };
    assert_eq!(
        losses,
        [
            loss("", "additionalProperties", LossKind::Tightened),
            loss("", "if", LossKind::Unenforced),
            loss("/properties/tags", "maxItems", LossKind::Tightened),
            loss("/properties/tags", "uniqueItems", LossKind::Unenforced),
            loss("/properties/tags/items", "maxLength", LossKind::Tightened),
            loss("/properties/tags/items", "pattern", LossKind::Unenforced),
        ]
    );
}

#[test]
fn losses_in_definitions_point_to_where_they_stand() {
    let schema = json!({
        "definitions": {"a b": {"type": "array", "uniqueItems": true, "items": {"type": "integer"}, "maxItems": 2}},
        "type": "object", "properties": {"x": {"$ref": "#/definitions/a b"}}, "additionalProperties": false,
    });
    let losses = lowered(&schema, 500).losses;
    assert_eq!(losses.len(), 1);
    assert_eq!((losses[0].pointer.as_str(), losses[0].keyword.as_str()), ("/definitions/a b", "uniqueItems"));
}

#[test]
fn a_recursive_schema_is_unrolled_and_ends() {
    let schema = json!({"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {
        "value": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
    }, "required": ["value", "next"], "additionalProperties": false}}});
    let lowered = lowered(&schema, 500);
    let sent = lowered.schema.unwrap();
    assert_eq!(allows(&sent, &json!({"value": 1, "next": {"value": 2, "next": null}})), Ok(true));
    assert_eq!(
        lowered.shown,
        Some(Shown::Outline(
            r#"{"value": integer, "next": node | null}
where node is {"value": integer, "next": node | null}"#
                .into()
        ))
    );
    assert!(!sent.to_string().contains("node"));
}

#[test]
fn what_nothing_satisfies_is_refused() {
    for schema in [
        json!(false),
        json!({"type": "object", "properties": {"a": false}, "required": ["a"]}),
        json!({"allOf": [{"type": "string"}, {"type": "integer"}]}),
        json!({"$ref": "#/$defs/x", "$defs": {"x": {"type": "object", "properties": {"x": {"$ref": "#/$defs/x"}}, "required": ["x"]}}}),
        json!({"enum": []}),
        json!({"type": "array", "minItems": 3, "maxItems": 2}),
        json!({"const": 3, "type": "string"}),
    ] {
        let refused = Native::LLGUIDANCE.lower(&LowerRequest::new(&schema)).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the schema cannot be used with llguidance: #: no value satisfies it",
            "{schema}"
        );
    }
}

#[test]
fn a_thousand_doublings_are_shared_not_copied() {
    // Each definition uses the next one twice: written out, 2^30 objects.
    let mut defs = serde_json::Map::new();
    for level in 0..30 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        defs.insert(
            format!("d{level}"),
            json!({"type": "object", "properties": {"l": next, "r": next}, "additionalProperties": false}),
        );
    }
    defs.insert("d30".into(), json!({"type": "integer"}));
    let schema = json!({"$ref": "#/$defs/d0", "$defs": defs});
    let sent = lowered(&schema, 500).schema.unwrap();
    assert!(sent.to_string().len() < 20_000);
    assert!(matcher(&sent).is_ok());
}

#[test]
fn a_huge_schema_is_lowered_or_refused_in_words() {
    let properties: serde_json::Map<_, _> = (0..20_000)
        .map(|n| {
            (format!("property_number_{n}"), json!({"type": "string", "enum": ["aaaaaaaa", "bbbbbbbb"]}))
        })
        .collect();
    let schema = json!({"type": "object", "properties": properties});
    assert!(schema.to_string().len() > 1_000_000);
    assert_eq!(lowered(&schema, 500).schema.unwrap()["properties"].as_object().unwrap().len(), 20_000);
    let properties: serde_json::Map<_, _> =
        (0..60_000).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
    let refused = Native::LLGUIDANCE
        .lower(&LowerRequest::new(&json!({"type": "object", "properties": properties})))
        .unwrap_err();
    assert!(refused.to_string().contains("too large; split it"), "{refused}");
}

#[test]
fn a_computed_value_is_generated_last_and_put_back() {
    let schema = json!({"type": "object", "properties": {"score": {"type": "integer"}, "parts": {"type": "array", "items": {"type": "integer"}}}, "required": ["score", "parts"]});
    let dependency =
        Dependency { first: vec!["$.parts[0]".parse().unwrap()], then: "$.score".parse().unwrap() };
    let request = LowerRequest { dependencies: &[dependency], ..LowerRequest::new(&schema) };
    let lowered = Native::LLGUIDANCE.lower(&request).unwrap();
    let names: Vec<_> =
        lowered.schema.as_ref().unwrap()["properties"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(names, ["parts", "score"]);
    assert_eq!(
        lowered.lift,
        [LiftOp { at: String::new(), lift: Lift::Reorder(vec!["score".into(), "parts".into()]) }]
    );
}

#[test]
fn maps_are_bounded_by_names_and_number() {
    let schema = json!({"type": "object", "additionalProperties": {"type": "integer"}});
    let sent = lowered(&schema, 500).schema.unwrap();
    assert_eq!(allows(&sent, &json!({"a": 1, "b": 2})), Ok(true));
    assert_eq!(allows(&sent, &json!({"": 1})), Ok(false));
    assert_eq!(allows(&sent, &json!({"a".repeat(33): 1})), Ok(false));
    assert_eq!(allows(&sent, &json!({"ä".repeat(32): 1})), Ok(true));
    let many: serde_json::Map<_, _> = (0..30).map(|n| (n.to_string(), json!(n))).collect();
    assert_eq!(allows(&sent, &Value::Object(many)), Ok(false));
}

#[test]
fn any_value_is_bounded_and_whole() {
    let sent = lowered(&json!({}), 200).schema.unwrap();
    let mut state = 7_usize;
    for _ in 0..20 {
        let draw = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        sample(&sent, draw).unwrap();
    }
    for document in [json!(1), json!("x"), json!([1, "a"]), json!({"a": null})] {
        assert_eq!(allows(&sent, &document), Ok(true), "{document}");
    }
}

#[test]
fn what_a_model_is_shown_reads_like_the_answer() {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "kind": {"enum": ["a", "b"], "description": "What it\nis"},
            "score": {"type": "number", "minimum": 0, "maximum": 1},
            "tags": {"type": "array", "items": {"type": "string"}},
            "born": {"type": "string", "format": "date"},
        },
        "required": ["name", "kind"],
    });
    let lowered = Prompt::outline().lower(&LowerRequest::new(&schema)).unwrap();
    let outline = "{\n  \"name\": string,\n  \"kind\": \"a\" | \"b\" /* What it is */,\n  \"score\"?: number from 0 to 1,\n  \"tags\"?: [string, ...],\n  \"born\"?: string (date)\n}";
    assert_eq!(lowered.shown, Some(Shown::Outline(outline.into())));
    let schema = json!({"$schema": "x", "type": "integer"});
    assert_eq!(
        Prompt::new().lower(&LowerRequest::new(&schema)).unwrap().shown,
        Some(Shown::JsonSchema(r#"{"type": "integer"}"#.into()))
    );
}
