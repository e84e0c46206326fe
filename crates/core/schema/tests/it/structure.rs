use std::sync::Arc;

use formwork_core::{Context, Inline, JsonPath, Structure};
use formwork_schema::{Formats, compile, compile_with, contract, contract_for};
use serde_json::{Value, json};

fn subschema(schema: Value, path: &str, document: Value) -> Option<Value> {
    compile(&schema).unwrap().subschema(&path.parse::<JsonPath>().unwrap(), &document)
}

#[test]
fn the_schema_of_a_place_stands_alone() {
    let schema = json!({
        "definitions": {"id": {"type": "string"}, "item": {"properties": {"id": {"$ref": "#/definitions/id"}}}},
        "properties": {"items": {"items": {"$ref": "#/definitions/item"}}},
    });
    assert_eq!(
        subschema(schema.clone(), "$.items[3].id", json!({})),
        Some(json!({"$ref": "#/$defs/id", "$defs": {"id": {"type": "string"}}}))
    );
    let items = subschema(schema.clone(), "$.items", json!({})).unwrap();
    assert_eq!(items["$defs"]["item"], json!({"properties": {"id": {"$ref": "#/$defs/id"}}}));
    assert_eq!(subschema(schema, "$.unknown", json!({})), None);
}

#[test]
fn the_variant_that_the_document_took_governs() {
    let variant = |kind: &str, schema: Value| json!({"properties": {"kind": {"const": kind}, "x": schema}});
    let schema =
        json!({"oneOf": [variant("a", json!({"type": "string"})), variant("b", json!({"type": "integer"}))]});
    assert_eq!(subschema(schema.clone(), "$.x", json!({"kind": "b"})), Some(json!({"type": "integer"})));
    assert_eq!(subschema(schema, "$.x", json!({})), None, "nobody knows which");
}

#[test]
fn several_parts_govern_together() {
    let schema =
        json!({"allOf": [{"properties": {"n": {"minimum": 1}}}], "properties": {"n": {"type": "integer"}}});
    assert_eq!(
        subschema(schema, "$.n", json!({})),
        Some(json!({"allOf": [{"type": "integer"}, {"minimum": 1}]}))
    );
}

#[test]
fn tuples_and_maps_have_places_too() {
    let schema =
        json!({"prefixItems": [{"type": "string"}], "items": {"additionalProperties": {"type": "integer"}}});
    assert_eq!(subschema(schema.clone(), "$[0]", json!([])), Some(json!({"type": "string"})));
    assert_eq!(subschema(schema, "$[1].any", json!([])), Some(json!({"type": "integer"})));
}

#[test]
fn a_recursive_schema_has_a_schema_at_every_depth() {
    let schema = json!({"properties": {"kids": {"items": {"$ref": "#"}}, "v": {"type": "integer"}}});
    assert_eq!(subschema(schema, "$.kids[0].kids[9].v", json!({})), Some(json!({"type": "integer"})));
    assert_eq!(subschema(json!({"$ref": "#"}), "$.a", json!({})), None);
}

#[test]
fn a_document_is_compiled_once() {
    let schema = json!({"type": "string", "format": "date"});
    assert!(Arc::ptr_eq(&compile(&schema).unwrap(), &compile(&schema.clone()).unwrap()));
    let lax = compile_with(&schema, Formats::Annotate).unwrap();
    assert!(lax.is_valid(&json!("soon")) && !compile(&schema).unwrap().is_valid(&json!("soon")));
}

#[test]
fn what_cannot_be_used_says_where_and_why() {
    for (schema, error) in [
        (json!({"properties": {"a": {"type": "objekt"}}}), "#/properties/a/type"),
        (
            json!({"items": {"$ref": "https://example.com/x.json"}}),
            "#/items/$ref: `$ref` to another document (https://example.com/x.json): nothing is fetched",
        ),
        (json!({"$ref": "file:///etc/passwd"}), "`$ref` to another document"),
        (
            json!({"properties": {"a": {"$ref": "#/$defs/gone"}}}),
            "#/properties/a/$ref: `$ref` to #/$defs/gone: nothing is there, add a schema",
        ),
        (json!({"items": {"$ref": "#gone"}}), "#/items/$ref: `$ref` to #gone: nothing is there"),
        (
            json!({"$schema": "https://example.com/mine", "type": "object"}),
            "#/$schema: there is no meta-schema \"https://example.com/mine\": remove `$schema`, or write",
        ),
        (json!({"pattern": "("}), "#/pattern"),
        (json!([1]), "a schema is an object"),
        (json!("x"), "a schema is an object"),
    ] {
        let message = compile(&schema).unwrap_err().to_string();
        assert!(message.contains(error) && !message.contains('\n'), "{schema}: {message}");
    }
}

#[test]
fn patterns_cannot_be_made_to_hang() {
    let evil = json!({"pattern": "^(a|aa)+\\1$"});
    let text = json!("a".repeat(60) + "b");
    assert!(!compile(&evil).unwrap().is_valid(&text));
    assert!(compile(&json!({"pattern": "^(?=.*\\d)[a-z\\d]{2,}$"})).unwrap().is_valid(&json!("a1")));
    assert!(!compile(&json!({"pattern": "^(a+)+$"})).unwrap().is_valid(&text));
}

#[test]
fn a_contract_of_a_type_decodes_integral_numbers() {
    #[derive(Debug, PartialEq, schemars::JsonSchema, serde::Deserialize)]
    #[serde(tag = "kind")]
    enum Reading {
        Level { of: u16, at: f64 },
        None,
    }
    let contract = contract::<Vec<Reading>>().unwrap();
    let value: Value =
        serde_json::from_str(r#"[{"kind": "Level", "of": 6.12e2, "at": 3.0}, {"kind": "None"}]"#).unwrap();
    let judgement = contract.judge(&value, &Context::EMPTY);
    assert!(judgement.is_accepted(), "{judgement:?}");
    assert_eq!(
        judgement.into_decoded::<Vec<Reading>>().unwrap(),
        [Reading::Level { of: 612, at: 3.0 }, Reading::None]
    );
}

#[test]
fn what_the_schema_allows_and_the_type_does_not_is_reported_with_its_path() {
    #[derive(Debug, serde::Deserialize)]
    struct Small {
        #[expect(dead_code, reason = "only decoded")]
        sizes: Vec<u8>,
    }
    let schema =
        Inline::new("small", json!({"properties": {"sizes": {"type": "array"}}, "required": ["sizes"]}));
    let contract = contract_for(Arc::new(schema)).unwrap().with_type::<Small>();
    let judgement = contract.judge(&json!({"sizes": [1, 256]}), &Context::EMPTY);
    assert_eq!(
        judgement.violations[0].to_string(),
        "Type mismatch at $.sizes[1]: expected u8, found invalid value: integer `256`"
    );
}

#[test]
fn a_schema_of_a_megabyte_and_a_deep_one_are_compiled_or_refused() {
    let properties: serde_json::Map<String, Value> =
        (0..20_000).map(|n| (format!("property_{n}"), json!({"type": "string", "maxLength": n}))).collect();
    let big = json!({"properties": properties});
    assert!(big.to_string().len() > 1_000_000);
    assert!(compile(&big).unwrap().is_valid(&json!({"property_3": "abc"})));
    let deep = (0..120).fold(json!({"type": "integer"}), |inner, _| json!({"items": inner}));
    assert!(compile(&deep).is_ok());
}

/// Finding A12: a member is described by the schema that the validator applies to it.
#[test]
fn patterns_govern_the_names_that_they_match_and_what_nothing_allows_has_no_schema() {
    let integer = json!({"type": "integer"});
    let schema = json!({
        "properties": {"both_a": {"minimum": 3}},
        "patternProperties": {"_a$": integer, "^x": {"maximum": 9}},
        "additionalProperties": false
    });
    for (path, expected) in [
        ("$.n_a", Some(integer.clone())),
        ("$.x", Some(json!({"maximum": 9}))),
        ("$.both_a", Some(json!({"allOf": [{"minimum": 3}, integer]}))),
        ("$.x_a", Some(json!({"allOf": [integer, {"maximum": 9}]}))),
        ("$.unknown", None),
    ] {
        assert_eq!(subschema(schema.clone(), path, json!({})), expected, "{path}");
    }
    let closed = json!({"allOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"a": false}}]});
    assert_eq!(subschema(closed, "$.a", json!({})), None);
}
