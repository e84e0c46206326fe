//! Tests of the testkit itself: generated documents are valid, and near misses are invalid in one way.

#![expect(clippy::unwrap_used, reason = "a test may simply fail")]

mod compare;
mod reader;
mod request;

use std::collections::BTreeSet;

use formwork_core::{Context, Report, Structure, Validator};
use formwork_schema::{compile, lint};
use formwork_testkit::{instance, near_misses, schema};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

/// Returns one document of a schema, if one is generated.
fn sample(schema: &Value, runner: &mut TestRunner) -> Option<Value> {
    instance(schema).new_tree(runner).ok().map(|tree| tree.current())
}

#[test]
fn documents_come_out_of_every_common_keyword() {
    let mut runner = TestRunner::deterministic();
    for schema in [
        json!(true),
        json!({"type": "integer", "multipleOf": 7, "minimum": 3, "maximum": 50}),
        json!({"type": "number", "exclusiveMinimum": 0, "maximum": 0.5}),
        json!({"type": "string", "minLength": 30}),
        json!({"type": "array", "items": {"type": "integer"}, "uniqueItems": true, "minItems": 2}),
        json!({"type": "array", "prefixItems": [{"type": "string"}, {"const": 1}], "items": false, "minItems": 2}),
        json!({"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 1}),
        json!({"allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"b": {"type": "null"}}, "required": ["b"]}]}),
        json!({"oneOf": [{"type": "string"}, {"type": "integer"}]}),
        json!({"$ref": "#/$defs/n", "$defs": {"n": {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]}}, "required": ["next"]}}}),
        json!({"type": ["integer", "null"], "minimum": 2, "maximum": 2}),
        json!({"type": "string", "pattern": "^(ab|cd){2}$"}),
        json!({"type": "object", "required": ["free"]}),
        json!({"format": "uuid", "type": "string"}),
        json!({"format": "date-time", "type": "string"}),
        json!({"format": "email", "type": "string"}),
        json!({"format": "ipv4", "type": "string"}),
        json!({"format": "ipv6", "type": "string"}),
        json!({"format": "uri", "type": "string"}),
        json!({"format": "duration", "type": "string"}),
        json!({"format": "time", "type": "string"}),
    ] {
        for _ in 0..20 {
            assert!(sample(&schema, &mut runner).is_some(), "{schema}");
        }
    }
}

#[test]
fn a_near_miss_is_made_of_every_keyword() {
    let schema = json!({
        "type": "object",
        "properties": {
            "a": {"type": "integer", "minimum": 0, "maximum": 9, "multipleOf": 2},
            "b": {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-z]+$"},
            "c": {"type": "array", "items": {"enum": [1, 2]}, "minItems": 1, "maxItems": 3, "uniqueItems": true},
            "d": {"const": "x"},
            "e": {"type": "string", "format": "date"},
            "f": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        },
        "required": ["a", "b", "c"],
        "additionalProperties": false,
    });
    let valid = json!({"a": 4, "b": "abc", "c": [1, 2], "d": "x", "e": "2026-11-21", "f": 0.5});
    let keywords: BTreeSet<_> = near_misses(&schema, &valid).iter().map(|miss| miss.keyword).collect();
    let expected = [
        "additionalProperties",
        "const",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "maxItems",
        "maxLength",
        "maximum",
        "minItems",
        "minLength",
        "minimum",
        "multipleOf",
        "pattern",
        "required",
        "type",
        "uniqueItems",
    ];
    assert_eq!(keywords, expected.into());
}

proptest! {
    #![proptest_config(Config { max_global_rejects: 100_000, ..Config::with_cases(200) })]

    #[test]
    fn a_random_schema_compiles_and_has_documents((schema, value) in schema().prop_flat_map(|schema| (Just(schema.clone()), instance(&schema)))) {
        let compiled = compile(&schema).unwrap();
        prop_assert!(compiled.is_valid(&value));
        let mut report = Report::default();
        compiled.validate(&value, &Context::EMPTY, &mut report);
        prop_assert!(report.is_empty());
        let errors: Vec<_> = lint(&schema).into_iter().filter(|finding| finding.verdict == formwork_core::Severity::Error).collect();
        prop_assert!(errors.is_empty(), "{:?}", errors);
    }

    #[test]
    fn a_near_miss_is_reported_at_or_around_its_place((schema, value) in schema().prop_flat_map(|schema| (Just(schema.clone()), instance(&schema)))) {
        let compiled = compile(&schema).unwrap();
        for miss in near_misses(&schema, &value) {
            let mut report = Report::default();
            compiled.validate(&miss.value, &Context::EMPTY, &mut report);
            prop_assert!(!report.is_empty());
            let near = report.violations().iter().any(|violation| violation.path.is_within(&miss.path) || miss.path.is_within(&violation.path));
            prop_assert!(near, "{:?}: {:?}", miss, report);
        }
    }

    #[test]
    fn the_schema_of_a_place_accepts_the_value_there((schema, value) in schema().prop_flat_map(|schema| (Just(schema.clone()), instance(&schema)))) {
        let compiled = compile(&schema).unwrap();
        let mut places = vec![(formwork_core::JsonPath::root(), &value)];
        while let Some((path, inner)) = places.pop() {
            if let Some(part) = compiled.subschema(&path, &value) {
                prop_assert!(compile(&part).unwrap().is_valid(inner), "{} at {}: {}", inner, path, part);
            }
            match inner {
                Value::Object(members) => places.extend(members.iter().map(|(name, member)| (path.key(name.as_str()), member))),
                Value::Array(items) => places.extend(items.iter().enumerate().map(|(index, item)| (path.index(index), item))),
                _ => {}
            }
        }
    }
}

/// In this schema, the variants that recurse are shorter as text than those that end.
#[test]
fn a_recursive_schema_has_documents_that_end() {
    let next =
        json!({"anyOf": [{"$ref": "#/$defs/node"}, {"$ref": "#/$defs/pair"}, {"$ref": "#/$defs/leaf"}]});
    let schema = json!({
        "$ref": "#/$defs/node",
        "$defs": {
            "node": {"type": "object", "required": ["a"], "properties": {"a": next}},
            "pair": {"type": "object", "required": ["x", "y"], "properties": {"x": next, "y": next}},
            "leaf": {"type": "object", "title": "long ".repeat(100), "required": ["n"], "properties": {"n": {"type": "integer"}}}
        }
    });
    let compiled = compile(&schema).unwrap();
    let mut runner = TestRunner::deterministic();
    let documents: Vec<_> = (0..20).filter_map(|_| sample(&schema, &mut runner)).collect();
    assert!(documents.len() > 10 && documents.iter().all(|document| compiled.is_valid(document)));
}
