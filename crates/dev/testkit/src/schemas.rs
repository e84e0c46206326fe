use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Generates schemas of the kind that people write for models: objects with properties of all types, arrays, unions,
/// constants, definitions and bounds, up to three levels deep.
///
/// Every schema compiles and is satisfied by some value.
///
/// ```
/// use proptest::prelude::*;
///
/// proptest!(ProptestConfig::with_cases(8), |(schema in formwork_testkit::schema())| {
///     prop_assert!(formwork_schema::compile(&schema).is_ok());
/// });
/// ```
pub fn schema() -> BoxedStrategy<Value> {
    let text = (0u64..4, 4u64..40)
        .prop_map(|(min, max)| json!({"type": "string", "minLength": min, "maxLength": max}));
    let whole = (-50i64..50, 0i64..200)
        .prop_map(|(low, span)| json!({"type": "integer", "minimum": low, "maximum": low + span}));
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        text,
        whole,
        Just(json!({"type": "integer", "exclusiveMinimum": 0})),
        Just(json!({"type": "number", "minimum": 0, "maximum": 1})),
        Just(json!({"type": "boolean"})),
        Just(json!({"type": "null"})),
        Just(json!({"type": ["string", "null"]})),
        Just(json!({"const": "fixed"})),
        prop::collection::btree_set("[a-z]{1,5}", 1..5).prop_map(|names| json!({"enum": names})),
        Just(json!({"enum": [1, 2, "three", null]})),
        Just(json!({"type": "string", "format": "date"})),
        Just(json!({"type": "string", "pattern": "^[a-z]{2,4}-[0-9]{1,3}$"})),
        Just(json!({"$ref": "#/$defs/shared"})),
    ];
    let node = leaf.prop_recursive(3, 24, 4, |inner| {
        let properties = prop::collection::vec(("[a-z]{1,6}", inner.clone(), any::<bool>()), 0..5);
        let object = (properties, prop::option::of(any::<bool>())).prop_map(|(properties, closed)| {
            let required: std::collections::BTreeSet<&String> = properties.iter().filter(|(_, _, required)| *required).map(|(name, _, _)| name).collect();
            let mut schema = json!({"type": "object", "required": required});
            schema["properties"] = Value::Object(properties.iter().map(|(name, schema, _)| (name.clone(), schema.clone())).collect());
            if let Some(closed) = closed {
                schema["additionalProperties"] = json!(!closed);
            }
            schema
        });
        let tagged = prop::collection::vec(inner.clone(), 2..4).prop_map(|variants| {
            let variant = |(n, schema): (usize, Value)| json!({
                "type": "object",
                "properties": {"kind": {"const": format!("k{n}")}, "value": schema},
                "required": ["kind", "value"],
            });
            json!({"oneOf": variants.into_iter().enumerate().map(variant).collect::<Vec<_>>()})
        });
        prop_oneof![
            3 => object,
            1 => (inner.clone(), 0u64..2, 2u64..5).prop_map(|(items, min, max)| json!({"type": "array", "items": items, "minItems": min, "maxItems": max})),
            1 => inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            1 => inner.clone().prop_map(|value| json!({"type": "object", "additionalProperties": value})),
            1 => tagged,
            1 => inner.prop_map(|schema| json!({"anyOf": [schema, {"type": "null"}]})),
        ]
    });
    let recursive = json!({"type": "object", "properties": {"name": {"type": "string"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}, "required": ["name"]});
    (node, any::<bool>())
        .prop_map(move |(mut schema, tree)| {
            if let Value::Object(members) = &mut schema {
                members.insert(
                    "$defs".to_owned(),
                    json!({"shared": {"type": "integer", "minimum": 1, "maximum": 9}, "tree": recursive}),
                );
            }
            if tree && let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
                properties.insert("tree".to_owned(), json!({"$ref": "#/$defs/tree"}));
            }
            schema
        })
        .boxed()
}

/// Generates schemas with every keyword of draft 2020-12 that constrains a value, in the combinations that people and
/// generators write: `allOf` with shared members, unions next to members, conditions, maps by pattern, tuples that may end
/// early, members that may be absent or `null`, recursion, and annotations everywhere.
///
/// Every schema compiles. Some are satisfied by no value, or by none that [`instance`](crate::instance) generates.
///
/// ```
/// use proptest::prelude::*;
///
/// proptest!(ProptestConfig::with_cases(8), |(schema in formwork_testkit::any_schema())| {
///     prop_assert!(formwork_schema::compile(&schema).is_ok());
/// });
/// ```
pub fn any_schema() -> BoxedStrategy<Value> {
    let big = 9_007_199_254_740_993_i64;
    let leaf = prop_oneof![
        Just(json!(true)),
        Just(json!({})),
        Just(json!({"type": "string"})),
        Just(
            json!({"type": "string", "minLength": 2, "maxLength": 20, "description": "A text.", "examples": ["ab"]})
        ),
        Just(json!({"minLength": 3})),
        Just(json!({"type": "string", "pattern": "^[a-z]+$"})),
        Just(json!({"type": "string", "pattern": "[0-9]{2}"})),
        Just(json!({"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3,}$", "maxLength": 30})),
        Just(json!({"type": "string", "format": "date-time"})),
        Just(json!({"type": "string", "format": "uri"})),
        Just(json!({"type": "integer"})),
        Just(json!({"type": "integer", "minimum": big, "maximum": big + 1000})),
        Just(json!({"type": "integer", "multipleOf": 5, "exclusiveMinimum": 0, "maximum": 100})),
        Just(json!({"type": "number", "exclusiveMinimum": 0, "maximum": 1.5})),
        Just(json!({"minimum": 3})),
        Just(json!({"type": ["integer", "string", "null"], "minimum": 1})),
        Just(json!({"type": "boolean", "default": true})),
        Just(json!({"type": "null"})),
        Just(json!({"const": {"a": [1, null], "b": {}}})),
        Just(json!({"enum": [1, 1.0, 2, "two", null, [3], {"k": "v"}, true]})),
        Just(
            json!({"oneOf": [{"const": "x", "description": "The first."}, {"const": "y", "description": "The second."}]})
        ),
        Just(json!({"not": {"type": "string"}})),
        Just(json!({"$ref": "#/$defs/shared"})),
        Just(json!({"$ref": "#/$defs/shared", "description": "Here."})),
        Just(json!({"$ref": "#/$defs/tree"})),
        Just(json!({"$ref": "#/$defs/list"})),
        Just(json!({"$ref": "#/$defs/json"})),
    ];
    let node = leaf.prop_recursive(3, 20, 4, |inner| {
        let member = (name(), inner.clone(), any::<bool>());
        let properties = prop::collection::vec(member, 0..4).boxed();
        let object = (properties.clone(), inner.clone(), 0_usize..15, inner.clone()).prop_map(
            |(properties, rest, kind, other)| with_more(object_of(&properties), kind, rest, &other),
        );
        let beside = (properties.clone(), properties.clone(), properties.clone(), 0_usize..5).prop_map(
            |(base, one, two, kind)| {
                let (one, two) = (object_of(&one), object_of(&two));
                let mut schema = object_of(&base);
                match kind {
                    0 => schema["allOf"] = json!([one, two]),
                    1 => schema["anyOf"] = json!([one, two]),
                    2 => schema["oneOf"] = json!([tagged("one", one), tagged("two", two)]),
                    3 => {
                        schema["if"] = json!({"properties": {"kind": {"const": "one"}}, "required": ["kind"]});
                        schema["then"] = one;
                        schema["else"] = two;
                    }
                    _ => schema["allOf"] = json!([{"$ref": "#/$defs/base"}, one]),
                }
                schema
            },
        );
        let array = (inner.clone(), prop::collection::vec(inner.clone(), 1..3), 0_usize..8).prop_map(
            |(items, prefix, kind)| match kind {
                0 => json!({"type": "array", "items": items}),
                1 => json!({"type": "array", "items": items, "minItems": 1, "maxItems": 4}),
                2 => json!({"type": "array", "items": items, "uniqueItems": true}),
                3 => json!({"type": "array", "prefixItems": prefix, "minItems": prefix.len(), "maxItems": prefix.len()}),
                4 => json!({"type": "array", "prefixItems": prefix, "items": false}),
                5 => json!({"type": "array", "prefixItems": prefix, "items": items}),
                6 => json!({"type": "array", "prefixItems": prefix}),
                _ => json!({"type": "array", "items": items, "contains": {"type": "string"}, "minItems": 1}),
            },
        );
        prop_oneof![
            3 => object,
            2 => beside,
            2 => array,
            1 => (inner.clone(), inner.clone()).prop_map(|(one, two)| json!({"anyOf": [one, two]})),
            1 => inner.prop_map(|schema| json!({"anyOf": [schema, {"type": "null"}], "title": "Maybe"})),
        ]
    });
    node.prop_map(|node| {
        let mut schema = if node.is_object() { node } else { json!({"allOf": [node]}) };
        let definitions = json!({
            "shared": {"type": "object", "properties": {
                "first": {"type": "string", "description": "First name"}, "last": {"type": ["string", "null"]},
                "age": {"type": "integer", "minimum": 0}, "mail": {"type": "string"},
            }, "required": ["first"]},
            "base": {"type": "object", "properties": {"id": {"type": "integer"}, "a": {"type": "string"}}, "required": ["id"]},
            "tree": {"type": "object", "properties": {"name": {"type": "string"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}, "required": ["name"]},
            "list": {"type": "object", "properties": {"head": {"type": "integer"}, "tail": {"anyOf": [{"$ref": "#/$defs/list"}, {"type": "null"}]}}, "required": ["head", "tail"], "additionalProperties": false},
            "json": {"anyOf": [{"type": ["string", "number", "boolean", "null"]}, {"type": "array", "items": {"$ref": "#/$defs/json"}}, {"type": "object", "additionalProperties": {"$ref": "#/$defs/json"}}]},
        });
        let text = schema.to_string();
        let uses = |name: &str| text.contains(&format!("#/$defs/{name}"));
        let used: std::collections::BTreeMap<_, _> = definitions.as_object().into_iter().flatten().filter(|(name, _)| uses(name)).collect();
        if !used.is_empty() {
            schema["$defs"] = json!(used);
        }
        schema
    })
    .boxed()
}

fn name() -> BoxedStrategy<String> {
    prop_oneof![
        6 => prop::sample::select(vec!["a", "b", "c", "kind", "id", "value"]).prop_map(str::to_owned),
        1 => "[a-z]{40,50}",
        1 => prop::sample::select(vec!["a b", "é", "a/b~c", "key", "entries", "others", "_0", "absent"]).prop_map(str::to_owned),
    ]
    .boxed()
}

fn object_of(properties: &[(String, Value, bool)]) -> Value {
    let named: Map<_, _> =
        properties.iter().map(|(name, schema, _)| (name.clone(), schema.clone())).collect();
    let required = properties.iter().filter(|(.., required)| *required).map(|(name, ..)| name);
    let required: std::collections::BTreeSet<_> = required.collect();
    let mut schema = json!({"type": "object", "properties": named});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// Adds a member that names the kind of the object.
fn tagged(kind: &str, mut schema: Value) -> Value {
    schema["properties"]["kind"] = json!({"const": kind});
    let mut required = schema["required"].as_array().cloned().unwrap_or_default();
    if !required.contains(&json!("kind")) {
        required.push(json!("kind"));
    }
    schema["required"] = Value::Array(required);
    schema
}

/// Adds a keyword about further members to the schema of an object.
fn with_more(mut schema: Value, kind: usize, rest: Value, other: &Value) -> Value {
    match kind {
        0 => schema["additionalProperties"] = json!(false),
        1 => schema["additionalProperties"] = json!(true),
        2 => schema["additionalProperties"] = rest,
        3 => schema = json!({"type": "object", "additionalProperties": rest}),
        4 => schema["patternProperties"] = json!({"^x-[a-z]+$": rest}),
        5 => {
            schema["patternProperties"] = json!({"^x[0-9]+$": rest, "^y[0-9]+$": other});
            schema["additionalProperties"] = json!(false);
        }
        6 => {
            schema["patternProperties"] = json!({"^x": rest, "1$": other});
            schema["additionalProperties"] = json!({"type": "integer"});
        }
        7 => {
            schema = json!({"type": "object", "propertyNames": {"pattern": "^[a-z]{2,4}$"}, "additionalProperties": rest})
        }
        8 => {
            schema["minProperties"] = json!(1);
            schema["additionalProperties"] = json!(true);
        }
        9 => schema["maxProperties"] = json!(2),
        10 => schema["dependentRequired"] = json!({"a": ["b"]}),
        11 => schema["unevaluatedProperties"] = json!(false),
        13 => {
            schema["propertyNames"] = json!({"pattern": "^[a-z]+$"});
            schema["additionalProperties"] = rest;
        }
        12 => schema["dependentSchemas"] = json!({"a": {"properties": {"zz": rest}}}),
        _ => schema["not"] = json!({"required": ["never"]}),
    }
    schema
}
