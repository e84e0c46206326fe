//! Tables of the keywords that Gemini's two dialects rewrite, drop or describe.

use formwork_core::{LossKind, Lower as _, LowerRequest, Lowered, Tighten, lift};
use formwork_dialect::{Native, Reaction, lint, lower_value};
use serde_json::{Value, json};

fn lowered(dialect: &Native, schema: &Value) -> Lowered {
    dialect.lower(&LowerRequest::new(schema)).unwrap_or_else(|refused| panic!("{schema}: {refused}"))
}

fn sent(dialect: &Native, schema: &Value) -> Value {
    lowered(dialect, schema).schema.unwrap()
}

fn node() -> Value {
    json!({
        "$ref": "#/$defs/node",
        "$defs": {"node": {
            "type": "object",
            "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}},
            "required": ["v"],
            "additionalProperties": false,
        }},
    })
}

#[test]
fn each_keyword_is_said_as_both_dialects_can() {
    let pair = json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "null"}], "items": false, "minItems": 2});
    let string = |description: &str| json!({"type": "string", "description": description});
    let any = Native::GEMINI.lower(&LowerRequest::new(&json!({}))).unwrap().schema.unwrap();
    assert_eq!((&any["type"], &any["items"]["required"]), (&json!("array"), &json!(["path", "value"])));
    for (schema, json_schema, openapi) in [
        (json!(true), any, string("(JSON, as text: any value)")),
        (
            json!({"const": 7}),
            json!({"type": "integer", "enum": [7]}),
            json!({"type": "string", "enum": ["7"]}),
        ),
        (
            json!({"enum": ["a", "b"]}),
            json!({"type": "string", "enum": ["a", "b"]}),
            json!({"type": "string", "enum": ["a", "b"]}),
        ),
        (
            json!({"enum": [1, null, "x"]}),
            json!({"anyOf": [{"type": "integer", "enum": [1]}, {"type": "null"}, {"type": "string", "enum": ["x"]}]}),
            json!({"type": "string", "enum": ["1", "null", "\"x\""]}),
        ),
        (
            json!({"enum": [{"k": 1}]}),
            json!({"type": "object", "properties": {"k": {"type": "integer", "enum": [1]}}, "required": ["k"], "additionalProperties": false}),
            json!({"type": "string", "enum": ["{\"k\":1}"]}),
        ),
        (
            json!({"type": "object", "additionalProperties": false}),
            json!({"type": "object", "properties": {}, "additionalProperties": false}),
            json!({"type": "string", "enum": ["{}"]}),
        ),
        (
            pair,
            json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "null"}], "minItems": 2, "maxItems": 2}),
            json!({"type": "object", "properties": {"_0": {"type": "string"}, "_1": {"type": "null"}}, "required": ["_0", "_1"], "additionalProperties": false}),
        ),
        (
            json!({"type": "integer", "exclusiveMinimum": 0}),
            json!({"type": "integer", "minimum": 1}),
            json!({"type": "integer", "minimum": 1}),
        ),
        (
            json!({"type": "number", "exclusiveMaximum": 1, "multipleOf": 0.5}),
            json!({"type": "number", "maximum": 1, "description": "(Less than 1.) (A multiple of 0.5.)"}),
            json!({"type": "number", "maximum": 1, "description": "(Less than 1.) (A multiple of 0.5.)"}),
        ),
        (
            json!({"type": "string", "pattern": "^[A-Z]+$", "maxLength": 3}),
            string("(At most 3 characters.) (Matches ^[A-Z]+$.)"),
            json!({"type": "string", "maxLength": 3, "pattern": "^[A-Z]+$"}),
        ),
        (json!({"type": "string", "pattern": "x"}), string("(Matches x.)"), string("(Matches x.)")),
        (
            json!({"type": "string", "format": "date"}),
            json!({"type": "string", "format": "date"}),
            string("(Format: date.)"),
        ),
    ] {
        assert_eq!(sent(&Native::GEMINI, &schema), json_schema, "{schema}");
        assert_eq!(sent(&Native::GEMINI_OPENAPI, &schema), openapi, "{schema}");
    }
}

#[test]
fn a_schema_inside_of_itself_is_json_in_a_string() {
    let schema = node();
    assert_eq!(
        sent(&Native::GEMINI, &schema)["$defs"]["node"]["properties"]["next"],
        json!({"$ref": "#/$defs/node"})
    );
    let lowered = lowered(&Native::GEMINI_OPENAPI, &schema);
    let document = json!({"v": 1, "next": {"v": 2, "next": {"v": 3}}});
    let answer = lower_value(&document, &lowered).unwrap();
    assert_eq!(answer, json!({"v": 1, "next": "{\"v\":2,\"next\":{\"v\":3}}"}));
    assert_eq!(lift(answer, &lowered), (document, vec![]));
    let description = lowered.schema.as_ref().unwrap()["properties"]["next"]["description"].to_string();
    assert!(description.contains("where node is"), "{description}");
    let losses: Vec<String> = lowered.losses.iter().map(ToString::to_string).collect();
    assert_eq!(losses, ["#/$defs/node: `type` is enforced loosely and checked"]);
}

#[test]
fn strings_that_hold_json_and_plain_ones_are_distinguished() {
    // If a number in a string could be a string of the schema, every string holds JSON.
    let schema = json!({"type": "array", "items": {"anyOf": [{"type": "string"}, {"enum": [1, 2]}]}});
    let lowered = lowered(&Native::GEMINI_OPENAPI, &schema);
    let document = json!(["1", 1, "x"]);
    let answer = lower_value(&document, &lowered).unwrap();
    assert_eq!(answer, json!(["\"1\"", "1", "\"x\""]));
    assert_eq!(lift(answer, &lowered), (document, vec![]));
    // 1 and 1.0 are equal, so only one text is enumerated.
    let one = self::lowered(&Native::GEMINI_OPENAPI, &json!({"const": 1.0}));
    assert_eq!(lower_value(&json!(1), &one), Some(json!("1.0")));
    assert_eq!(lower_value(&json!(2), &one), None);
}

#[test]
fn the_sum_of_maximal_lengths_is_kept() {
    let list = json!({"type": "array", "items": {"type": "integer"}, "maxItems": 100});
    let properties: serde_json::Map<String, Value> =
        (0..20).map(|n| (format!("p{n}"), list.clone())).collect();
    let schema = json!({"type": "object", "properties": properties});
    for dialect in [Native::GEMINI, Native::GEMINI_OPENAPI] {
        let lowered = lowered(&dialect, &schema);
        let sum: u64 = lowered.schema.as_ref().unwrap()["properties"]
            .as_object()
            .unwrap()
            .values()
            .filter_map(|list| list["maxItems"].as_u64())
            .sum();
        assert_eq!(sum, 900);
        let left = lowered.losses.iter().filter(|loss| loss.keyword == "maxItems");
        assert_eq!(left.filter(|loss| loss.kind == LossKind::Unenforced).count(), 11);
    }
    let endless = json!({"type": "array", "items": {"type": "array", "items": {"type": "string"}}});
    let request = LowerRequest::new(&endless).with_tighten(Tighten::Bounded).with_max_tokens(Some(100_000));
    let bounded = Native::GEMINI.lower(&request).unwrap();
    let written = bounded.schema.unwrap();
    for bound in &bounded.bounds {
        let node = written.pointer(&bound.at).unwrap();
        assert!(node["maxItems"] == bound.max || node["maxLength"] == bound.max, "{node}");
    }
}

#[test]
fn definitions_are_written_out_unless_that_is_too_long() {
    // Each level is used twice in the next one.
    let mut schema =
        json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "required": ["x"]});
    for level in 0..4 {
        let inner = if level == 3 {
            json!({"type": "integer"})
        } else {
            json!({"$ref": format!("#/$defs/d{}", level + 1)})
        };
        schema["$defs"][format!("d{level}")] = json!({"type": "object", "properties": {"a": inner, "b": inner}, "required": ["a", "b"], "additionalProperties": false});
    }
    let small = lowered(&Native::GEMINI_OPENAPI, &schema);
    assert!(small.schema.as_ref().unwrap().get("$defs").is_none());
    let value = (0..4).fold(json!(1), |inner, _| json!({"a": inner, "b": inner}));
    let document = json!({"x": value});
    assert_eq!(lift(lower_value(&document, &small).unwrap(), &small), (document, vec![]));
    // Written out without references, forty levels would be 2^40 copies.
    let mut deep = json!({"type": "array", "items": {"$ref": "#/$defs/d0"}});
    for level in 0..40 {
        let inner = if level == 39 {
            json!({"type": "integer"})
        } else {
            json!({"$ref": format!("#/$defs/d{}", level + 1)})
        };
        deep["$defs"][format!("d{level}")] = json!({"anyOf": [{"type": "array", "items": inner}, {"type": "object", "properties": {"a": inner}, "required": ["a"]}]});
    }
    assert!(sent(&Native::GEMINI_OPENAPI, &deep).to_string().len() < 12 * deep.to_string().len());
}

#[test]
fn nesting_below_the_fifth_level_is_text() {
    let deep = (0..7).fold(json!({"type": "integer"}), |inner, _| json!({"type": "array", "items": inner}));
    let lowered = lowered(&Native::GEMINI_OPENAPI, &deep);
    let document = (0..7).fold(json!(1), |inner, _| json!([inner]));
    let answer = lower_value(&document, &lowered).unwrap();
    assert_eq!(answer, json!([[[[["[[1]]"]]]]]));
    assert_eq!(lift(answer, &lowered), (document, vec![]));
}

#[test]
fn the_lint_says_what_fails_the_call() {
    let schema = json!({
        "type": "object",
        "properties": {
            "a": {"type": ["string", "null"]},
            "b": {"$ref": "#/$defs/x", "description": "d"},
            "c": {"enum": [1]},
            "d": {"type": "number", "exclusiveMinimum": 0},
            "e": {"type": "object", "additionalProperties": {"type": "string"}},
            "f": {"const": "x"},
        },
        "$defs": {"x": {"type": "string"}},
    });
    let found = |dialect: &str| {
        let findings = lint(dialect, &schema).into_iter();
        findings
            .map(|found| (found.pointer, found.keyword.unwrap_or_default(), found.verdict))
            .collect::<Vec<_>>()
    };
    let all = |rows: &[(&str, &str, Reaction)]| {
        let rows =
            rows.iter().map(|(at, keyword, verdict)| ((*at).to_owned(), (*keyword).to_owned(), *verdict));
        rows.collect::<Vec<_>>()
    };
    let expected = [
        ("/properties/b", "$ref", Reaction::Rejected),
        ("/properties/d", "exclusiveMinimum", Reaction::Ignored),
    ];
    assert_eq!(found("gemini"), all(&expected));
    let expected = [
        ("", "$defs", Reaction::Rejected),
        ("/properties/a", "type", Reaction::Rejected),
        ("/properties/b", "$ref", Reaction::Rejected),
        ("/properties/c", "enum", Reaction::Rejected),
        ("/properties/d", "exclusiveMinimum", Reaction::Rejected),
        ("/properties/e", "properties", Reaction::Rejected),
        ("/properties/e", "additionalProperties", Reaction::Forbids),
        ("/properties/f", "const", Reaction::Rejected),
    ];
    assert_eq!(found("gemini-openapi"), all(&expected));
}
