//! Bounds and their sizes, and rejected schemas.

use formwork_core::Dependency;
use formwork_core::{
    Lift, LiftOp, Loss, LossKind, Lower as _, LowerRequest, Lowered, SchemaText, Tighten, lift,
};
use formwork_dialect::{Native, Prompt, lower_value};
use formwork_testkit::each;
use serde_json::{Value, json};

use crate::model::{allows, matcher, sample};

fn lowered(schema: &Value) -> Lowered {
    Native::LLGUIDANCE.lower(&LowerRequest::new(schema)).unwrap()
}

fn bounded(schema: &Value, max_tokens: u32) -> Lowered {
    let request = LowerRequest::new(schema).with_tighten(Tighten::Bounded).with_max_tokens(Some(max_tokens));
    Native::LLGUIDANCE.lower(&request).unwrap()
}

#[test]
fn the_policy_decides_what_may_be_excluded() {
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {"type": "integer"}, "minItems": 20}},
        "required": ["a"],
    });
    let sent = |tighten| {
        let request = LowerRequest::new(&schema).with_tighten(tighten).with_max_tokens(Some(100));
        Native::LLGUIDANCE.lower(&request).unwrap()
    };
    let acts = |tighten| {
        let losses = sent(tighten).losses.into_iter().filter(|loss| loss.kind == LossKind::Tightened);
        losses.map(|loss| format!("{} {}", loss.pointer, loss.keyword)).collect::<Vec<_>>()
    };
    assert!(acts(Tighten::None).is_empty());
    assert_eq!(acts(Tighten::Closed), [" additionalProperties"]);
    assert_eq!(
        acts(Tighten::Bounded),
        [" additionalProperties", "/properties/a maxLength", "/properties/b maxItems"]
    );
    let open = sent(Tighten::None).schema.unwrap();
    assert_eq!(allows(&open, &json!({"a": "", "further": [1]})), Ok(true));
    let closed = sent(Tighten::Closed).schema.unwrap();
    assert_eq!(allows(&closed, &json!({"a": "", "further": [1]})), Ok(false));
    let long = json!({"a": "x".repeat(5000), "b": (0..100).collect::<Vec<_>>()});
    assert_eq!(allows(&closed, &long), Ok(true));
    let bounded = sent(Tighten::Bounded);
    assert_eq!(bounded.schema.as_ref().unwrap()["properties"]["b"]["maxItems"], 20);
    assert!(sent(Tighten::Closed).bounds.is_empty());
    let full = json!({"a": "", "b": vec![1; 20]});
    let problems = lift(full, &bounded).1;
    assert_eq!((problems[0].rule.as_str(), problems[0].path.to_string().as_str()), ("truncated", "$.b"));
}

#[test]
fn strings_share_the_tokens_of_a_bounded_answer() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {"type": "string"}}}, "required": ["a"]});
    let few = bounded(&schema, 100).schema.unwrap();
    let many = bounded(&schema, 2000).schema.unwrap();
    let of = |schema: &Value| {
        (
            schema["properties"]["a"]["maxLength"].as_u64().unwrap(),
            schema["properties"]["b"]["maxItems"].as_u64().unwrap(),
        )
    };
    let ((few_text, few_items), (many_text, many_items)) = (of(&few), of(&many));
    assert!(few_text < many_text && few_items <= many_items, "{few} {many}");
    assert!(few_text * (few_items + 1) / 3 <= 100, "{few}");
}

#[test]
fn the_report_names_every_keyword_that_is_not_enforced() {
    let schema = json!({
        "type": "object",
        "properties": {"tags": {"type": "array", "items": {"type": "string", "pattern": "^(?=x)"}, "uniqueItems": true}},
        "if": {"required": ["tags"]}, "then": {"minProperties": 1},
    });
    let losses = lowered(&schema).losses;
    let loss = |pointer: &str, keyword: &str, kind| Loss::new(pointer, keyword, kind);
    assert_eq!(
        losses,
        [
            loss("", "additionalProperties", LossKind::Tightened),
            loss("", "if", LossKind::Unenforced),
            loss("/properties/tags", "uniqueItems", LossKind::Unenforced),
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
    let losses = lowered(&schema).losses;
    assert_eq!(losses.len(), 1);
    assert_eq!((losses[0].pointer.as_str(), losses[0].keyword.as_str()), ("/definitions/a b", "uniqueItems"));
}

/// A tree, a list, and an indirectly recursive definition, of any depth.
#[test]
fn recursion_is_said_by_every_dialect_that_has_it() {
    let node = json!({"$ref": "#/$defs/node"});
    let tree = json!({"type": "object", "properties": {"name": {"type": "string"}, "kids": {"type": "array", "items": node}}, "required": ["name", "kids"]});
    let list = json!({"type": "object", "properties": {"value": {"type": "integer"}, "next": {"anyOf": [node, {"type": "null"}]}}, "required": ["value", "next"]});
    let mutual = json!({"type": "object", "properties": {"other": {"$ref": "#/$defs/other"}}});
    let deep = |leaf: Value, around: fn(Value) -> Value| (0..40).fold(leaf, |inner, _| around(inner));
    let cases = [
        (tree, deep(json!({"name": "leaf", "kids": []}), |inner| json!({"name": "n", "kids": [inner]}))),
        (list, deep(json!(null), |inner| json!({"value": 1, "next": inner}))),
        (mutual, deep(json!({}), |inner| json!({"other": {"node": inner}}))),
    ];
    each(cases, |(definition, document)| {
        let other = json!({"type": "object", "properties": {"node": node}});
        let document = if document.is_null() { json!({"value": 0, "next": null}) } else { document };
        let by_name = json!({"$ref": "#/$defs/node", "$defs": {"node": definition, "other": other}});
        let mut by_root: Value =
            serde_json::from_str(&definition.to_string().replace("#/$defs/node", "#")).unwrap();
        by_root["$defs"] = json!({"other": {"type": "object", "properties": {"node": {"$ref": "#"}}}});
        for dialect in crate::laws::all() {
            for schema in [&by_name, &by_root] {
                let lowered = dialect.lower(&LowerRequest::new(schema)).unwrap();
                let answer = lower_value(&document, &lowered).unwrap();
                let sent = lowered.schema.as_ref().unwrap();
                assert!(formwork_schema::compile(sent).unwrap().is_valid(&answer), "{dialect:?} {sent}");
                assert_eq!(lift(answer, &lowered), (document.clone(), vec![]), "{dialect:?} {sent}");
                let mut acts = lowered.losses.iter().filter(|loss| loss.kind == LossKind::Tightened);
                assert!(acts.all(|loss| loss.keyword == "additionalProperties"), "{:?}", lowered.losses);
            }
        }
    });
}

#[test]
fn a_recursive_definition_is_named_in_the_outline() {
    let schema = json!({"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {
        "value": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
    }, "required": ["value", "next"], "additionalProperties": false}}});
    assert_eq!(
        lowered(&schema).prompt_schema,
        Some(SchemaText::Outline(
            r#"{"value": integer, "next": node | null}
where node is {"value": integer, "next": node | null}"#
                .into()
        ))
    );
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
        json!({"type": "integer", "minimum": 3, "maximum": 5, "multipleOf": 7}),
        json!({"type": "object", "minProperties": 2, "properties": {"a": {}}, "additionalProperties": false}),
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
    // Each definition uses the next one twice: 2^30 objects without references.
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
    let sent = lowered(&schema).schema.unwrap();
    assert!(sent.to_string().len() < 20_000);
    assert!(matcher(&sent).is_ok());
}

/// FINDINGS A6: each of these has a valid document, and was rejected as unsatisfiable.
#[test]
fn what_something_satisfies_is_never_refused() {
    for (schema, document) in [
        (
            json!({"type": "object", "minProperties": 2, "properties": {"a": {"type": "integer"}}}),
            json!({"a": 1, "b": 2}),
        ),
        (
            json!({"type": "object", "patternProperties": {"^(?=x)": {"type": "integer"}}, "additionalProperties": false}),
            json!({"x1": 1}),
        ),
        (json!({"type": "number", "minimum": 0.3, "maximum": 0.3, "multipleOf": 0.1}), json!(0.3)),
        (json!({"allOf": [{"enum": [1, 2]}, {"enum": [1.0]}]}), json!(1)),
        (json!({"type": "integer", "minimum": 1e16}), json!(10_000_000_000_000_001_i64)),
        (json!({"type": "integer", "minimum": 9_007_199_254_740_993_i64}), json!(9_007_199_254_740_993_i64)),
        (json!({"type": "objekt"}), json!({})),
    ] {
        for dialect in crate::laws::all() {
            for tighten in [Tighten::None, Tighten::Closed] {
                let lowered = dialect.lower(&LowerRequest::new(&schema).with_tighten(tighten));
                let lowered = lowered.unwrap_or_else(|refused| panic!("{dialect:?} {schema}: {refused}"));
                if tighten == Tighten::None {
                    let answer = lower_value(&document, &lowered);
                    assert!(answer.is_some(), "{dialect:?} {schema}: {document} by {:?}", lowered.schema);
                }
            }
        }
    }
}

#[test]
fn a_huge_schema_is_lowered() {
    let properties: serde_json::Map<_, _> = (0..20_000)
        .map(|n| {
            (format!("property_number_{n}"), json!({"type": "string", "enum": ["aaaaaaaa", "bbbbbbbb"]}))
        })
        .collect();
    let schema = json!({"type": "object", "properties": properties});
    assert!(schema.to_string().len() > 1_000_000);
    assert_eq!(lowered(&schema).schema.unwrap()["properties"].as_object().unwrap().len(), 20_000);
}

/// FINDINGS A8: a chain of small types with an optional member each is not larger than the types themselves.
#[test]
fn sharing_survives_optional_members_unions_and_descriptions() {
    let schema = |count: usize| {
        let mut defs = serde_json::Map::new();
        for level in 0..count {
            let next = json!({"$ref": format!("#/$defs/T{}", level + 1), "description": "The next one."});
            let maybe = json!({"anyOf": [{"$ref": format!("#/$defs/T{}", level + 1)}, {"type": "null"}]});
            defs.insert(
                format!("T{level}"),
                json!({"type": "object", "properties": {"id": {"type": "integer"}, "a": next, "b": maybe, "c": maybe}, "required": ["id"]}),
            );
        }
        defs.insert(
            format!("T{count}"),
            json!({"type": "object", "properties": {"leaf": {"type": "string"}}}),
        );
        json!({"$ref": "#/$defs/T0", "$defs": defs})
    };
    for dialect in crate::laws::all() {
        let size = |count| {
            let request = schema(count);
            let lowered = dialect.lower(&LowerRequest::new(&request)).unwrap();
            (lowered.schema.unwrap().to_string().len(), request.to_string().len())
        };
        let (sent, original) = size(3);
        assert!(sent <= 3 * original + 1000, "{dialect:?}: {sent} from {original}");
        // OpenAI accepts ten levels; Anthropic accepts 24 optional members.
        if !["openai", "anthropic"].contains(&dialect.name()) {
            let (sent, original) = size(60);
            assert!(sent <= 3 * original, "{dialect:?}: {sent} from {original}");
        }
    }
}

#[test]
fn a_computed_value_is_generated_last_and_put_back() {
    let schema = json!({"type": "object", "properties": {"score": {"type": "integer"}, "parts": {"type": "array", "items": {"type": "integer"}}}, "required": ["score", "parts"]});
    let dependency =
        Dependency { first: vec!["$.parts[0]".parse().unwrap()], then: "$.score".parse().unwrap() };
    let dependencies = [dependency];
    let request = LowerRequest::new(&schema).with_dependencies(&dependencies);
    let lowered = Native::LLGUIDANCE.lower(&request).unwrap();
    let names: Vec<_> =
        lowered.schema.as_ref().unwrap()["properties"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(names, ["parts", "score"]);
    assert_eq!(
        lowered.lift,
        [LiftOp { at: String::new(), lift: Lift::Reorder(vec!["score".into(), "parts".into()]) }]
    );
}

/// Keys can be hashes, addresses or sentences, and there may be hundreds of them.
#[test]
fn maps_take_any_keys_and_any_number_of_them() {
    let schema = json!({"type": "object", "additionalProperties": {"type": "integer"}});
    let address = format!("0x{}", "ab".repeat(20));
    let many: serde_json::Map<_, _> = (0..40).map(|n| (format!("{n:064x}"), json!(n))).collect();
    for document in
        [json!({}), json!({"": 1}), json!({address: 1}), json!({"ä".repeat(100): 1}), Value::Object(many)]
    {
        for dialect in crate::laws::all() {
            let lowered = dialect.lower(&LowerRequest::new(&schema)).unwrap();
            let answer = lower_value(&document, &lowered).unwrap();
            assert_eq!(allows(lowered.schema.as_ref().unwrap(), &answer), Ok(true), "{dialect:?}");
            assert_eq!(lift(answer, &lowered), (document.clone(), vec![]), "{dialect:?}");
        }
    }
    let sent = bounded(&schema, 500).schema.unwrap();
    assert_eq!(allows(&sent, &json!({"a": 1, "b": 2})), Ok(true));
    assert_eq!(allows(&sent, &json!({"a".repeat(33): 1})), Ok(false));
}

#[test]
fn any_value_is_as_deep_as_it_is() {
    let deep = (0..10)
        .fold(json!("leaf"), |inner, n| if n % 2 == 0 { json!([inner, 1]) } else { json!({"k": inner}) });
    for document in [json!(1), json!("x"), json!(null), json!([1, "a"]), json!({"a": {"b": []}}), deep] {
        for dialect in crate::laws::all() {
            for schema in [json!({}), json!({"type": "object", "properties": {"meta": true}})] {
                let is_bare = schema == json!({});
                let lowered = dialect.lower(&LowerRequest::new(&schema)).unwrap();
                let document = if is_bare { document.clone() } else { json!({"meta": document}) };
                let answer = lower_value(&document, &lowered).unwrap();
                assert_eq!(allows(lowered.schema.as_ref().unwrap(), &answer), Ok(true), "{dialect:?}");
                assert_eq!(lift(answer, &lowered), (document, vec![]), "{dialect:?}");
            }
        }
    }
}

#[test]
fn a_bounded_value_of_any_kind_ends() {
    let sent = bounded(&json!({}), 200).schema.unwrap();
    let mut state = 7_usize;
    for _ in 0..20 {
        let draw = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        sample(&sent, draw).unwrap();
    }
}

/// Descriptions, titles, defaults and examples reach the model from every place: B12.
#[test]
fn annotations_reach_the_model() {
    let schema = json!({
        "type": "object",
        "properties": {
            "home": {"$ref": "#/$defs/address", "description": "The postal address."},
            "work": {"$ref": "#/$defs/address"},
            "pet": {"oneOf": [{"const": "cat", "description": "It meows."}, {"const": "dog", "description": "It barks."}]},
            "shape": {"anyOf": [
                {"type": "object", "properties": {"r": {"type": "number"}}, "required": ["r"], "description": "A circle."},
                {"type": "object", "properties": {"w": {"type": "number"}}, "required": ["w"], "description": "A square."},
            ]},
            "age": {"type": "integer", "default": 18, "examples": [34, 51], "title": "Age in years"},
        },
        "required": ["home", "work", "pet", "shape", "age"],
        "$defs": {"address": {"type": "object", "properties": {"street": {"type": "string", "description": "With number."}}, "required": ["street"], "description": "An address."}},
    });
    let words = [
        "The postal address.",
        "An address.",
        "With number.",
        "It meows",
        "It barks",
        "A circle.",
        "A square.",
        "18",
        "34",
        "Age in years",
    ];
    for dialect in crate::laws::all() {
        let lowered = dialect.lower(&LowerRequest::new(&schema)).unwrap();
        let read = match lowered.prompt_schema {
            Some(SchemaText::Outline(text) | SchemaText::JsonSchema(text)) => text,
            _ => lowered.schema.unwrap().to_string(),
        };
        for words in words {
            assert!(read.contains(words), "{dialect:?}: {words:?} is not in {read}");
        }
    }
    let outline = Prompt::outline().lower(&LowerRequest::new(&schema)).unwrap();
    assert!(
        matches!(outline.prompt_schema, Some(SchemaText::Outline(text)) if words.iter().all(|words| text.contains(words)))
    );
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
    assert_eq!(lowered.prompt_schema, Some(SchemaText::Outline(outline.into())));
    let schema = json!({"$schema": "x", "type": "integer"});
    assert_eq!(
        Prompt::new().lower(&LowerRequest::new(&schema)).unwrap().prompt_schema,
        Some(SchemaText::JsonSchema(r#"{"type": "integer"}"#.into()))
    );
}

#[test]
fn of_a_closed_object_without_a_possible_member_the_empty_object_is_left() {
    let schema = json!({"type": "object", "properties": {"mode": {"type": "object", "enum": ["all"]}}});
    for dialect in crate::laws::all() {
        let lowered = dialect.lower(&LowerRequest::new(&schema).with_tighten(Tighten::Closed)).unwrap();
        for document in [json!({}), json!({"mode+": "all"})] {
            let sent =
                lower_value(&document, &lowered).unwrap_or_else(|| panic!("{}: {document}", dialect.name()));
            assert_eq!(lift(sent, &lowered), (json!({}), vec![]), "{}", dialect.name());
        }
        assert_eq!(lower_value(&json!(["all"]), &lowered), None, "{}", dialect.name());
    }
}
