//! Wrappers of vendors, and schemas that say nothing.

use formwork_schema::{SaysNothing, compile, lint, says_nothing, unwrapped, wrapped};
use proptest::prelude::*;
use serde_json::{Value, json};

fn person() -> Value {
    json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]})
}

#[test]
fn wrappers_of_vendors_are_unwrapped_with_a_warning() {
    for (wrapper, pointer) in [
        (json!({"name": "save", "input_schema": person()}), "/input_schema"),
        (
            json!({"name": "save", "description": "Saves.", "input_schema": person(), "cache_control": {"type": "ephemeral"}}),
            "/input_schema",
        ),
        (json!({"name": "save", "title": "Save", "inputSchema": person()}), "/inputSchema"),
        (json!({"name": "save", "parameters": person()}), "/parameters"),
        (json!({"name": "save", "schema_definition": person()}), "/schema_definition"),
        (json!({"name": "save", "strict": true, "schema": person()}), "/schema"),
        (json!({"type": "json_schema", "name": "save", "schema": person()}), "/schema"),
        (
            json!({"type": "json_schema", "json_schema": {"name": "save", "strict": true, "schema": person()}}),
            "/json_schema/schema",
        ),
        (
            json!({"type": "function", "function": {"name": "save", "parameters": person()}}),
            "/function/parameters",
        ),
        (json!({"type": "function", "name": "save", "parameters": person(), "strict": true}), "/parameters"),
        (json!({"input_schema": person()}), "/input_schema"),
    ] {
        assert_eq!(wrapped(&wrapper).as_deref(), Some(pointer), "{wrapper}");
        let (inner, warning) = unwrapped(&wrapper).unwrap();
        assert_eq!((inner, says_nothing(inner)), (&person(), None));
        assert_eq!(
            (warning.kind.name(), warning.message.contains(&format!("#{pointer} of "))),
            ("unwrapped", true)
        );
    }
}

#[test]
fn a_schema_that_resembles_a_wrapper_is_left_as_it_is() {
    for schema in [
        person(),
        // Properties with the names of wrappers.
        json!({"properties": {"parameters": person()}}),
        json!({"type": "object", "properties": {"name": {}, "input_schema": person()}}),
        // A keyword beside the member constrains the value, refers to a schema or defines one.
        json!({"type": "object", "parameters": person()}),
        json!({"required": ["a"], "input_schema": person()}),
        json!({"enum": [1], "schema": person()}),
        json!({"$ref": "#/schema", "schema": person()}),
        json!({"not": {"type": "null"}, "schema": person()}),
        json!({"parameters": {"$ref": "#/$defs/p"}, "$defs": {"p": person()}}),
        json!({"dependencies": {"a": ["b"]}, "schema": person()}),
        // Not an object, or not the only one.
        json!({"name": "a", "input_schema": "person"}),
        json!({"name": "a", "schema": true}),
        json!({"schema": person(), "parameters": person()}),
        json!({"type": "object", "schema": person()}),
        json!(true),
        json!([{"schema": person()}]),
    ] {
        assert_eq!((wrapped(&schema), unwrapped(&schema)), (None, None), "{schema}");
    }
}

#[test]
fn a_root_without_a_constraining_keyword_says_nothing() {
    for schema in [
        json!(true),
        json!({}),
        json!({"title": "x"}),
        json!({"totally": 1}),
        json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:x", "description": "d", "x-own": 1}),
        json!({"$defs": {"person": person()}}),
        json!({"definitions": {"person": person()}}),
        json!({"default": 1, "examples": [2], "deprecated": true, "nullable": true, "contentEncoding": "base64"}),
        json!({"WeatherUpdates": person()}),
        json!({"$ref": "#/$defs/any", "$defs": {"any": {"description": "Anything."}}}),
        json!({"allOf": [{}, true]}),
        json!({"anyOf": [{}, {"title": "x"}]}),
        json!({"additionalItems": false, "$schema": "http://json-schema.org/draft-07/schema#"}),
    ] {
        assert_eq!(says_nothing(&schema), Some(SaysNothing::Root), "{schema}");
        assert!(
            lint(&schema).iter().any(|finding| finding.to_string().starts_with("warning: #: every value"))
        );
    }
}

#[test]
fn cycles_without_a_step_into_the_value_say_nothing() {
    let a_and_b = |a: Value, b: Value| json!({"$ref": "#/$defs/a", "$defs": {"a": a, "b": b}});
    let to = |name: &str| json!({"$ref": format!("#/$defs/{name}")});
    for (schema, pointer) in [
        (json!({"$ref": "#"}), ""),
        (json!({"anyOf": [{"$ref": "#"}, {"type": "string"}]}), ""),
        (json!({"allOf": [{"$ref": "#"}], "title": "x"}), ""),
        (a_and_b(to("b"), to("a")), "/$defs/a"),
        (a_and_b(json!({"allOf": [to("b")]}), json!({"anyOf": [to("a"), {"type": "string"}]})), "/$defs/a"),
        (
            a_and_b(json!({"oneOf": [to("b")]}), json!({"description": "b", "allOf": [{}, to("a")]})),
            "/$defs/a",
        ),
        (a_and_b(to("b"), to("b")), "/$defs/b"),
        // The cycle is a part of a schema that says something.
        (json!({"type": "object", "properties": {"x": to("a")}, "$defs": {"a": to("a")}}), "/$defs/a"),
    ] {
        assert_eq!(says_nothing(&schema), Some(SaysNothing::Cycle(pointer.to_owned())), "{schema}");
    }
}

#[test]
fn cycles_with_a_step_into_the_value_or_another_keyword_say_something() {
    for schema in [
        json!({"type": "object", "properties": {"next": {"$ref": "#"}}}),
        json!({"anyOf": [{"type": "null"}, {"items": {"$ref": "#"}}]}),
        json!({"allOf": [{"$ref": "#"}], "type": "object"}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"type": "string", "anyOf": [{}, {"$ref": "#/$defs/a"}]}}}),
        json!({"type": "array", "items": {}}),
        json!({"properties": {"any": true}}),
        json!({"anyOf": [{}, {"type": "string"}]}),
        json!({"dependencies": {"a": ["b"]}}),
        json!(false),
        // An unused definition is no part of the schema.
        json!({"type": "string", "$defs": {"a": {"$ref": "#/$defs/a"}}}),
    ] {
        assert_eq!(says_nothing(&schema), None, "{schema}");
    }
}

/// Generates schemas of references, unions and few keywords, often in cycles.
fn tangles() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        3 => (0_usize..4).prop_map(|name| json!({"$ref": format!("#/$defs/{name}")})),
        1 => Just(json!({})),
        1 => Just(json!(true)),
        1 => Just(json!({"title": "t"})),
        1 => Just(json!({"type": "string"})),
        1 => Just(json!({"minimum": 3})),
    ];
    let node = leaf.prop_recursive(2, 6, 3, |inner| {
        let list = prop::collection::vec(inner.clone(), 1..3);
        prop_oneof![
            list.clone().prop_map(|parts| json!({"allOf": parts})),
            list.clone().prop_map(|parts| json!({"anyOf": parts})),
            list.prop_map(|parts| json!({"oneOf": parts})),
            inner.clone().prop_map(|inner| json!({"properties": {"a": inner}})),
            inner.prop_map(|inner| json!({"not": inner})),
        ]
    });
    (node.clone(), prop::collection::vec(node, 4)).prop_map(|(root, units)| {
        let units: serde_json::Map<_, _> =
            units.into_iter().enumerate().map(|(name, unit)| (name.to_string(), unit)).collect();
        match root {
            Value::Object(mut root) => {
                root.insert("$defs".to_owned(), units.into());
                root.into()
            }
            root => root,
        }
    })
}

/// Returns whether a schema rejects one of some values of all kinds.
fn rejects_something(schema: &Value) -> bool {
    let values = [
        json!(null),
        json!(true),
        json!(1),
        json!(-7.5),
        json!(""),
        json!("text"),
        json!([]),
        json!([{"a": 1}]),
        json!({}),
        json!({"a": "b", "c": 1}),
    ];
    compile(schema).is_ok_and(|compiled| values.iter().any(|value| !compiled.is_valid(value)))
}

proptest! {
    #[test]
    fn a_schema_that_says_nothing_rejects_no_value(schema in tangles()) {
        match says_nothing(&schema) {
            Some(SaysNothing::Cycle(pointer)) => {
                let part = json!({"$ref": format!("#{pointer}"), "$defs": schema.get("$defs")});
                prop_assert!(pointer.is_empty() || !rejects_something(&part), "{} of {}", pointer, schema);
            }
            Some(_) => prop_assert!(!rejects_something(&schema), "{}", schema),
            None => {}
        }
    }
}
