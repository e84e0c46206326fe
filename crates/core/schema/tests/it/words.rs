use serde_json::{Value, json};

use crate::{messages, violations};

fn messages_of(schema: Value, value: Value) -> Vec<String> {
    messages(&schema, &value)
}

#[test]
fn the_texts_of_the_documents_are_said_word_for_word() {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "components": {"type": "array", "items": {
                "type": "object",
                "properties": {"id": {"type": "string"}, "api": {"type": "string"}},
                "required": ["id", "api"],
            }},
            "risks": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["name", "components", "risks"],
    });
    assert_eq!(
        messages(&schema, &json!({"components": []})),
        ["Missing required field at path $.name", "Missing required field at path $.risks"]
    );
    assert_eq!(
        messages(&schema, &json!({"name": "MyApp", "components": [], "risks": [123]})),
        ["Type mismatch at $.risks[0]: expected string, found number"]
    );
    let wrong = json!({"name": "x", "components": [{"id": 5, "api": ""}, {"id": "b"}], "risks": "x"});
    let mut found: Vec<String> = violations(&schema, &wrong).iter().map(|v| v.path.to_string()).collect();
    found.sort();
    assert_eq!(found, ["$.components[0].id", "$.components[1].api", "$.risks"]);
}

#[test]
fn every_keyword_has_its_words() {
    for (schema, value, message) in [
        (json!({"type": "integer"}), json!(12.5), "Type mismatch at $: expected integer, found 12.5"),
        (
            json!({"type": ["string", "null"]}),
            json!({}),
            "Type mismatch at $: expected null or string, found object",
        ),
        (
            json!({"enum": ["a", 1, null]}),
            json!("b"),
            "Value not allowed at $: expected \"a\", 1 or null, found \"b\"",
        ),
        (json!({"const": {"a": 1}}), json!([]), "Value not allowed at $: expected {\"a\":1}, found array"),
        (json!({"minimum": 0}), json!(-1), "Number out of range at $: expected at least 0, found -1"),
        (
            json!({"maximum": 1000}),
            json!(1001),
            "Number out of range at $: expected at most 1000, found 1001",
        ),
        (json!({"exclusiveMinimum": 0}), json!(0), "Number out of range at $: expected more than 0, found 0"),
        (
            json!({"exclusiveMaximum": 1}),
            json!(1.0),
            "Number out of range at $: expected less than 1, found 1.0",
        ),
        (json!({"multipleOf": 5}), json!(7), "Number not a multiple at $: expected a multiple of 5, found 7"),
        (
            json!({"minLength": 10}),
            json!("ä"),
            "String too short at $: expected at least 10 characters, found 1 character",
        ),
        (
            json!({"maxLength": 1}),
            json!("🙂🙂"),
            "String too long at $: expected at most 1 character, found 2 characters",
        ),
        (
            json!({"pattern": "^a$"}),
            json!("b"),
            "Pattern mismatch at $: expected text that matches `^a$`, found \"b\"",
        ),
        (
            json!({"format": "date-time"}),
            json!("now"),
            "Format mismatch at $: expected text of the format `date-time`, found \"now\"",
        ),
        (json!({"minItems": 2}), json!([1]), "Too few items at $: expected at least 2 items, found 1 item"),
        (json!({"maxItems": 0}), json!([1]), "Too many items at $: expected at most 0 items, found 1 item"),
        (json!({"uniqueItems": true}), json!([1, 1]), "Items not unique at $: expected no item twice"),
        (
            json!({"contains": {"const": 1}}),
            json!([2]),
            "Items do not fit at $: expected an item that fits `contains`",
        ),
        (
            json!({"minProperties": 1}),
            json!({}),
            "Too few fields at $: expected at least 1 field, found 0 fields",
        ),
        (
            json!({"maxProperties": 0}),
            json!({"a": 1}),
            "Too many fields at $: expected at most 0 fields, found 1 field",
        ),
        (json!({"additionalProperties": false}), json!({"a b": 1}), "Unexpected field at path $['a b']"),
        (json!({"unevaluatedProperties": false}), json!({"a": 1}), "Unexpected field at path $.a"),
        (
            json!({"propertyNames": {"pattern": "^x"}}),
            json!({"a": 1}),
            "propertyNames at $.a: expected a name: text that matches `^x`, found \"a\"",
        ),
        (json!({"dependentRequired": {"a": ["b"]}}), json!({"a": 1}), "Missing required field at path $.b"),
        (
            json!({"not": {"type": "string"}}),
            json!("a"),
            "Value not allowed at $: expected anything that `not` does not describe, found \"a\"",
        ),
        (
            json!({"properties": {"a": false}}),
            json!({"a": 1}),
            "Value not allowed at $.a: expected nothing here, found 1",
        ),
        (
            json!({"if": {"type": "string"}, "then": {"minLength": 2}}),
            json!("a"),
            "String too short at $: expected at least 2 characters, found 1 character",
        ),
        (
            json!({"prefixItems": [{"type": "string"}], "items": false}),
            json!(["a", 1]),
            "Value not allowed at $[1]: expected nothing here, found 1",
        ),
    ] {
        assert_eq!(messages_of(schema.clone(), value), [message], "{schema}");
    }
}

#[test]
fn one_place_has_one_root_cause() {
    let schema = json!({"type": "integer", "maximum": 1000, "multipleOf": 2});
    assert_eq!(
        messages_of(schema.clone(), json!(1001.5)),
        ["Type mismatch at $: expected integer, found 1001.5"]
    );
    assert_eq!(messages_of(schema, json!(1001)).len(), 2, "different causes are all told");
    let twice = json!({"allOf": [{"type": "string"}, {"type": "string"}]});
    assert_eq!(messages_of(twice, json!(1)).len(), 1);
    let required = json!({"allOf": [{"required": ["a"]}, {"required": ["a", "b"]}]});
    assert_eq!(
        messages_of(required, json!({})),
        ["Missing required field at path $.a", "Missing required field at path $.b"]
    );
}

#[test]
fn of_variants_the_one_that_was_meant_is_reported() {
    let shape = |kind: &str, field: &str| {
        json!({
            "type": "object",
            "properties": {"kind": {"const": kind}, field: {"type": "integer"}},
            "required": ["kind", field],
            "additionalProperties": false,
        })
    };
    for keyword in ["oneOf", "anyOf"] {
        let schema =
            json!({"properties": {"shape": {keyword: [shape("circle", "radius"), shape("square", "side")]}}});
        assert_eq!(
            messages(&schema, &json!({"shape": {"kind": "square", "side": "x"}})),
            ["Type mismatch at $.shape.side: expected integer, found string"]
        );
        assert_eq!(
            messages(&schema, &json!({"shape": {"kind": "circle"}})),
            ["Missing required field at path $.shape.radius"]
        );
        assert_eq!(
            messages(&schema, &json!({"shape": {"kind": "star"}})),
            [
                "No variant fits at $.shape: expected kind = \"circle\" or kind = \"square\", found kind = \"star\""
            ]
        );
        let several = json!({keyword: [shape("circle", "radius"), {"properties": {"kind": {"enum": ["box", "cube"]}}}]});
        assert_eq!(
            messages_of(several, json!({"kind": "star"})),
            [
                "No variant fits at $: expected kind = \"circle\" or kind = \"box\" or \"cube\", found kind = \"star\""
            ]
        );
        let untagged = json!({keyword: [shape("circle", "radius"), {"required": ["name"]}]});
        assert_eq!(messages_of(untagged, json!({"kind": "star"})), ["Missing required field at path $.name"]);
    }
    let nullable = json!({"anyOf": [{"type": "object", "required": ["a"]}, {"type": "null"}]});
    assert_eq!(messages_of(nullable.clone(), json!({})), ["Missing required field at path $.a"]);
    assert_eq!(messages_of(nullable, json!(7)), ["No variant fits at $: expected object or null, found 7"]);
    let scalars = json!({"oneOf": [{"type": "string", "maxLength": 2}, {"type": "integer"}]});
    assert_eq!(
        messages_of(scalars, json!("abc")),
        ["String too long at $: expected at most 2 characters, found 3 characters"]
    );
    let both = json!({"oneOf": [{"minimum": 0}, {"maximum": 10}]});
    assert_eq!(
        messages_of(both, json!(5)),
        ["No variant fits at $: expected exactly one variant to fit, found 2 variants"]
    );
}

#[test]
fn nested_variants_are_followed_to_the_leaf() {
    let leaf = json!({"oneOf": [
        {"type": "object", "properties": {"t": {"const": "n"}, "v": {"type": "number"}}, "required": ["t", "v"]},
        {"type": "object", "properties": {"t": {"const": "l"}, "of": {"type": "array", "items": {"$ref": "#/$defs/leaf"}}}, "required": ["t", "of"]},
    ]});
    let schema = json!({"$ref": "#/$defs/leaf", "$defs": {"leaf": leaf}});
    let value = json!({"t": "l", "of": [{"t": "n", "v": 1}, {"t": "l", "of": [{"t": "n", "v": "2"}]}]});
    assert_eq!(
        messages(&schema, &value),
        ["Type mismatch at $.of[1].of[0].v: expected number, found string"]
    );
}

#[test]
fn a_number_without_a_fraction_is_an_integer() {
    let schema = json!({"type": "integer", "minimum": 0, "maximum": 1000});
    for accepted in ["0", "1000", "612.0", "6.12e2"] {
        assert!(messages(&schema, &serde_json::from_str(accepted).unwrap()).is_empty(), "{accepted}");
    }
}

#[test]
fn many_violations_are_capped() {
    let schema = json!({"items": {"type": "string"}});
    assert_eq!(violations(&schema, &json!(vec![1; 1000])).len(), formwork_core::Report::CAP);
}

#[test]
fn a_name_of_digits_is_no_index() {
    let numbers = json!({"additionalProperties": {"type": "number"}});
    let schema =
        json!({"properties": {"0": numbers, "a/b": {"items": {"type": "number"}}, "": {"type": "null"}}});
    let found = violations(&schema, &json!({"0": {"1": "x"}, "a/b": ["x"], "": 1}));
    let paths: Vec<String> = found.iter().map(|violation| violation.path.to_string()).collect();
    assert_eq!(paths, ["$['0']['1']", "$['a/b'][0]", "$['']"]);
}
