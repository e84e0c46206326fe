use formwork_core::Schema as _;
use formwork_shape::Shape;
use serde_json::{Value, json};

/// Returns the shape of a schema on one line, and the losses as `pointer keyword`.
fn from(schema: &Value) -> (String, Vec<String>) {
    let (shape, unsaid) = Shape::from_schema(schema).unwrap();
    let words = shape.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    (words, unsaid.iter().map(|one| format!("{} {}", one.pointer, one.keyword)).collect())
}

#[test]
fn marked_fields_are_grounded_rules_in_both_directions() {
    let text = "name~, items: [{code ~ ?: str, qty~: int}], \"a b\"~, note?";
    let shape = Shape::parse_fields(text).unwrap();
    let targets = ["$.name", "$.items[*].code", "$.items[*].qty", "$['a b']"];
    let rules: Vec<Value> =
        targets.iter().map(|target| json!({"rule": "grounded", "target": target})).collect();
    assert_eq!(shape.document()["x-formwork-rules"], json!(rules));
    assert_eq!(shape.document().pointer("/properties/items/items/required"), Some(&json!(["qty"])));
    assert_eq!(
        from(shape.document()),
        (shape.to_string().split_whitespace().collect::<Vec<_>>().join(" "), vec![])
    );
    assert!(Shape::parse_fields("name").unwrap().document().get("x-formwork-rules").is_none());
    // Rules that no mark expresses are reported.
    for rule in [
        json!({"rule": "grounded", "target": "$.name", "minLength": 3}),
        json!({"rule": "grounded", "target": "$.nothing"}),
        json!({"rule": "grounded", "target": "$"}),
    ] {
        let schema = json!({"type": "object", "properties": {"name": {}}, "x-formwork-rules": [rule]});
        assert_eq!(from(&schema), ("{ \"name\"?: any }".to_owned(), vec![" x-formwork-rules".to_owned()]));
    }
}

#[test]
fn what_a_schema_says_and_what_a_shape_leaves_unsaid() {
    for (schema, shape, unsaid) in [
        (json!(true), "any", vec![]),
        (json!(false), "any", vec![" false"]),
        (json!({"type": "string", "maxLength": 5, "title": "x"}), "string", vec![" maxLength"]),
        (json!({"type": ["integer", "number"]}), "number", vec![]),
        (json!({"type": ["string", "number"]}), "any", vec![" type"]),
        (json!({"type": "null"}), "null", vec![]),
        (json!({"type": "string", "enum": ["a", 5, "b", "a"]}), "\"a\" | \"b\"", vec![]),
        (json!({"enum": [[1], 2]}), "any", vec![" enum"]),
        (json!({"const": {"a": 1}}), "any", vec![" enum"]),
        (json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), "string | null", vec![]),
        (json!({"oneOf": [{"const": "a"}, {"const": "b", "description": "B"}]}), "\"a\" | \"b\"", vec![]),
        (json!({"anyOf": [{"enum": ["a"]}, {"type": "null"}]}), "\"a\" | null", vec![]),
        (json!({"anyOf": [{"type": "string"}, {"type": "number"}]}), "any", vec![" anyOf"]),
        (json!({"allOf": [{"type": "string"}]}), "string", vec![]),
        (json!({"allOf": [{"type": "object"}, {"required": ["a"]}]}), "any", vec![" allOf"]),
        (
            json!({"type": "array", "prefixItems": [{}], "minItems": 1}),
            "[any]",
            vec![" prefixItems", " minItems"],
        ),
        (
            json!({"type": "object", "properties": {"a/b": {"type": "integer", "minimum": 0}}, "required": ["a/b", "c"],
                "additionalProperties": false}),
            "{ \"a/b\": integer, \"c\": any }",
            vec!["/properties/a~1b minimum", " additionalProperties"],
        ),
        (
            json!({"properties": {"x": {"$ref": "#/definitions/pair"}, "y": {"$ref": "#/definitions/pair"}},
                "definitions": {"pair": {"type": "array", "items": {"type": "string", "pattern": "x"}}}}),
            "{ \"x\"?: [string], \"y\"?: [string] }",
            vec!["/definitions/pair/items pattern"],
        ),
        (
            json!({"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object", "properties": {
                "next": {"$ref": "#/$defs/tree"}}}}}),
            "{ \"next\"?: any }",
            vec!["/$defs/tree/properties/next $ref"],
        ),
    ] {
        assert_eq!(
            from(&schema),
            (shape.to_owned(), unsaid.into_iter().map(str::to_owned).collect()),
            "{schema}"
        );
    }
}

#[test]
fn the_examples_of_the_repository() {
    let file = |name: &str| {
        let path: std::path::PathBuf =
            [env!("CARGO_MANIFEST_DIR"), "..", "..", "..", "examples", name].iter().collect();
        std::fs::read_to_string(path).unwrap()
    };
    let schema: Value = serde_json::from_str(&file("structured-answer-lite.schema.json")).unwrap();
    let (shape, unsaid) = Shape::from_schema(&schema).unwrap();
    assert!(shape.to_string().contains("\"schema_version\": \"1.0\""), "{shape}");
    assert!(unsaid.iter().filter(|one| one.keyword == "additionalProperties").count() == 5, "{unsaid:?}");
    let feature = Shape::parse(&file("feature-design.shape")).unwrap();
    assert_eq!(feature, Shape::parse(crate::DOCUMENT).unwrap());
}

#[test]
fn a_schema_that_is_none_is_refused() {
    let error = Shape::from_schema(&json!({"type": "strng"})).unwrap_err();
    assert!(error.to_string().contains("the schema cannot be used"), "{error}");
    assert!(
        Shape::from_schema(&json!({"$ref": "other.json"}))
            .unwrap_err()
            .message
            .contains("nothing is fetched")
    );
}

#[test]
fn references_that_multiply_end() {
    let mut definitions = serde_json::Map::new();
    for level in 0..40 {
        let below = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        definitions.insert(format!("d{level}"), json!({"properties": {"a": below, "b": below}}));
    }
    definitions.insert("d40".to_owned(), json!({"type": "string"}));
    let error = Shape::from_schema(&json!({"$ref": "#/$defs/d0", "$defs": definitions})).unwrap_err();
    assert!(error.message.contains("more than 20000 places"), "{error}");
    let chain: serde_json::Map<String, Value> =
        (0..5000).map(|n| (format!("c{n}"), json!({"$ref": format!("#/$defs/c{}", n + 1)}))).collect();
    let mut chain = json!({"$ref": "#/$defs/c0", "$defs": chain});
    chain["$defs"]["c5000"] = json!({"type": "string"});
    let error = Shape::from_schema(&chain).unwrap_err();
    assert!(error.message.contains("more than 400 parts include each other"), "{error}");
}

#[test]
fn three_errors_at_once_with_their_paths() {
    let shape = Shape::parse(crate::DOCUMENT).unwrap();
    let value = json!({
        "name": "MyApp", "rationale": "#", "risks": "x",
        "components": [{"id": 5, "responsibility": "r", "api": "a"}, {"id": "b", "responsibility": "r"}],
    });
    let mut found: Vec<String> = shape.validate(&value).iter().map(ToString::to_string).collect();
    found.sort();
    assert_eq!(
        found,
        [
            "Missing required field at path $.components[1].api",
            "Type mismatch at $.components[0].id: expected string, found number",
            "Type mismatch at $.risks: expected array, found string",
        ]
    );
    let whole = json!({"name": "a", "rationale": "", "components": [], "risks": [], "more": 1});
    assert_eq!(shape.validate(&whole), []);
    assert_eq!(shape.document()["additionalProperties"], Value::Null);
}
