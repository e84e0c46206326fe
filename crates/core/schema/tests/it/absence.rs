//! Members that a text may lack, and `null` in optional members.

use std::sync::Arc;

use formwork_core::{Absent, Context, Contract, Inline, Schema as _, normalise};
use formwork_schema::{compile, contract_for};
use serde_json::{Value, json};

fn contract(schema: &Value) -> Contract {
    contract_for(Arc::new(Inline::new("any", schema.clone()))).unwrap()
}

fn paths(paths: &[formwork_core::JsonPath]) -> Vec<String> {
    paths.iter().map(ToString::to_string).collect()
}

/// Returns the settled value, the removed members, the added members, and the paths of the violations.
fn settled(schema: &Value, value: Value) -> (Value, Vec<String>, Vec<String>, Vec<String>) {
    let settled = contract(schema).settle(value, &Context::EMPTY);
    let violations =
        settled.judgement.violations.iter().map(|violation| violation.path.to_string()).collect();
    (settled.value, paths(&settled.removed), paths(&settled.added), violations)
}

#[test]
fn null_in_an_optional_member_counts_as_absent_and_every_other_null_is_a_violation() {
    let object = |properties: Value, required: Value| json!({"type": "object", "properties": properties, "required": required});
    let text = json!({"type": "string"});
    let item = object(json!({"a": text, "b": {"enum": ["x", "y"]}, "c": {"const": 1}}), json!(["a"]));
    for (schema, value, removed, violations) in [
        // Optional members, whatever keyword rejects `null`.
        (item.clone(), json!({"a": "", "b": null, "c": null}), vec!["$.b", "$.c"], vec![]),
        // A required member.
        (item.clone(), json!({"a": null, "b": null}), vec!["$.b"], vec!["$.a"]),
        // `null` is a value of the member.
        (object(json!({"a": {"type": ["string", "null"]}}), json!([])), json!({"a": null}), vec![], vec![]),
        // A member that the schema does not name: another member, a map, a pattern.
        (
            json!({"properties": {"a": text}, "additionalProperties": false}),
            json!({"a": null, "z": null}),
            vec!["$.a"],
            vec!["$.z"],
        ),
        (
            json!({"properties": {"a": text}, "additionalProperties": text}),
            json!({"z": null}),
            vec![],
            vec!["$.z"],
        ),
        (json!({"patternProperties": {"^z": text}}), json!({"z": null}), vec![], vec!["$.z"]),
        // A list.
        (json!({"items": text}), json!([null, "x"]), vec![], vec!["$[0]"]),
        // Members of nested values, behind references, in `allOf` and in the variant that the tag selects.
        (
            json!({"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"list": {"items": {"$ref": "#/$defs/y"}}}}, "y": item}}),
            json!({"list": [{"a": "", "b": null}, {"a": "", "b": "x"}, {"a": "", "c": null}]}),
            vec!["$.list[0].b", "$.list[2].c"],
            vec![],
        ),
        (
            json!({"allOf": [{"properties": {"a": text, "b": text}}, {"required": ["a"]}]}),
            json!({"a": null, "b": null}),
            vec!["$.b"],
            vec!["$.a"],
        ),
        (
            json!({"oneOf": [
                {"properties": {"kind": {"const": "k"}, "n": {"type": "integer"}}, "required": ["kind"]},
                {"properties": {"kind": {"const": "l"}, "n": text}, "required": ["kind", "n"]},
            ]}),
            json!({"kind": "k", "n": null}),
            vec!["$.n"],
            vec![],
        ),
        (
            json!({"oneOf": [
                {"properties": {"kind": {"const": "k"}, "n": {"type": "integer"}}, "required": ["kind"]},
                {"properties": {"kind": {"const": "l"}, "n": text}, "required": ["kind", "n"]},
            ]}),
            json!({"kind": "l", "n": null}),
            vec![],
            vec!["$.n"],
        ),
        // A union without tags: the violation is at the union. `null` that a variant allows stays.
        (
            json!({"properties": {"u": {"anyOf": [
                object(json!({"a": text, "b": text, "n": {"type": ["string", "null"]}}), json!(["a"])),
                object(json!({"c": text}), json!(["c"])),
            ]}}}),
            json!({"u": {"a": "", "b": null, "n": null}}),
            vec!["$.u.b"],
            vec![],
        ),
        // A condition requires the member, or a number of members is required.
        (
            json!({"properties": {"k": text, "a": text, "b": text}, "if": {"properties": {"k": {"const": "x"}}},
                "then": {"required": ["a"]}}),
            json!({"k": "x", "a": null, "b": null}),
            vec!["$.b"],
            vec!["$.a"],
        ),
        (json!({"properties": {"a": text}, "minProperties": 1}), json!({"a": null}), vec![], vec!["$.a"]),
    ] {
        let (result, found, added, wrong) = settled(&schema, value.clone());
        assert_eq!(
            (&found, &wrong),
            (
                &removed.iter().map(ToString::to_string).collect(),
                &violations.iter().map(ToString::to_string).collect()
            ),
            "{value} of {schema}"
        );
        assert!(added.is_empty());
        let mut expected = value.clone();
        for path in &found {
            let path: formwork_core::JsonPath = path.parse().unwrap();
            let around = path.parent().unwrap().get_mut(&mut expected).unwrap().as_object_mut().unwrap();
            let Some(formwork_core::Segment::Key(name)) = path.last() else { panic!("{path}") };
            assert_eq!(around.shift_remove(name), Some(Value::Null));
        }
        assert_eq!(result, expected, "{value} of {schema}");
        let contract = contract(&schema);
        assert_eq!(
            contract.judge(&value, &Context::EMPTY).is_accepted(),
            value == expected && violations.is_empty()
        );
    }
}

#[test]
fn more_nulls_than_a_report_has_violations_are_removed_at_once() {
    let item = json!({"properties": {"a": {"type": "string"}, "b": {"type": "integer"}}});
    let schema = json!({"properties": {"list": {"items": item}}});
    let list: Vec<Value> = (0..1500).map(|_| json!({"a": null, "b": null})).collect();
    let (value, removed, _, violations) = settled(&schema, json!({"list": list}));
    assert_eq!((removed.len(), violations.len()), (3000, 0));
    assert!(value["list"].as_array().unwrap().iter().all(|item| *item == json!({})));
}

#[test]
fn a_marked_member_is_accepted_as_null_or_nothing_and_listed() {
    let text = json!({"type": "string", "minLength": 1});
    let marked = json!({"type": "string", "minLength": 1, "x-formwork-absent": true});
    let person = |birth: &Value, required: Value| json!({"type": "object", "properties": {"name": text, "birth": birth}, "required": required});
    let reference = json!({"$ref": "#/$defs/text", "description": "The date.", "x-formwork-absent": true});
    let defined = |mut schema: Value| {
        schema["$defs"] = json!({"text": text});
        schema
    };
    let rooted = |mut schema: Value, absent: Value| {
        schema["x-formwork-absent"] = absent;
        schema
    };
    let plain = person(&text, json!(["name", "birth"]));
    for schema in [
        person(&marked, json!(["name", "birth"])),
        // The mark makes the member required.
        person(&marked, json!(["name"])),
        person(
            &json!({"type": ["string", "null"], "minLength": 1, "x-formwork-absent": true}),
            json!(["name"]),
        ),
        person(&json!({"anyOf": [text, {"type": "null"}], "x-formwork-absent": true}), json!(["name"])),
        person(&json!({"oneOf": [text], "x-formwork-absent": true}), json!(["name"])),
        defined(person(&reference, json!(["name", "birth"]))),
        rooted(plain.clone(), json!(["$.birth"])),
        // The old draft ignores keywords beside a reference, except the mark.
        {
            let mut schema = defined(person(&reference, json!(["name", "birth"])));
            schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
            schema
        },
    ] {
        for (value, expected, not_stated) in [
            (json!({"name": "M", "birth": "1990"}), json!({"name": "M", "birth": "1990"}), vec![]),
            (json!({"name": "M", "birth": null}), json!({"name": "M", "birth": null}), vec!["$.birth"]),
            (json!({"name": "M"}), json!({"name": "M", "birth": null}), vec!["$.birth"]),
        ] {
            let contract = contract(&schema);
            let settled = contract.settle(value.clone(), &Context::EMPTY);
            assert!(settled.judgement.is_accepted(), "{:?} of {value} of {schema}", settled.judgement);
            assert_eq!(settled.value, expected, "{schema}");
            assert_eq!(paths(&contract.not_stated(&settled.value)), not_stated, "{value} of {schema}");
        }
        for value in
            [json!({"name": "M", "birth": ""}), json!({"name": null, "birth": null}), json!({"birth": null})]
        {
            assert!(!settled(&schema, value.clone()).3.is_empty(), "{value} of {schema}");
        }
        let birth = &normalise(&schema)["properties"]["birth"];
        assert!(
            birth["description"].as_str().unwrap().ends_with("null if the text does not state it)")
                || birth["description"] == "null if the text does not state it",
            "{birth}"
        );
        assert_eq!(normalise(&normalise(&schema)), normalise(&schema), "marks are applied once");
    }
    assert_eq!(settled(&plain, json!({"name": "M", "birth": null})).3, ["$.birth"]);
}

#[test]
fn paths_mark_members_of_lists_and_only_one_use_of_a_definition() {
    let schema = json!({
        "properties": {
            "buyer": {"$ref": "#/$defs/party"},
            "seller": {"$ref": "#/$defs/party"},
            "items": {"type": "array", "items": {"properties": {"note": {"type": "string"}}, "required": ["note"]}},
            "tree": {"$ref": "#/$defs/tree"},
        },
        "$defs": {
            "party": {"properties": {"name": {"type": "string"}}, "required": ["name"]},
            "tree": {"properties": {"label": {"type": "string"}, "inner": {"items": {"$ref": "#/$defs/tree"}}}, "required": ["label"]},
        },
    });
    let absent: Absent =
        serde_json::from_value(json!(["$.buyer.name", "$.items[*].note", "$.tree.inner[*].label"])).unwrap();
    let schema = Inline::new("order", schema).with_absent(&absent);
    let schema = schema.document();
    let value = json!({
        "buyer": {}, "seller": {"name": "S"}, "items": [{"note": "n"}, {"note": null}, {}],
        "tree": {"label": "l", "inner": [{"label": null}]},
    });
    let (value, removed, added, violations) = settled(schema, value);
    assert_eq!((removed.len(), violations.len()), (0, 0));
    assert_eq!(added, ["$.buyer.name", "$.items[2].note"]);
    let not_stated = contract(schema).not_stated(&value);
    assert_eq!(
        paths(&not_stated),
        ["$.buyer.name", "$.items[1].note", "$.items[2].note", "$.tree.inner[0].label"]
    );
    for (value, path) in [
        (json!({"seller": {"name": null}}), "$.seller.name"),
        (json!({"tree": {"label": null}}), "$.tree.label"),
        (
            json!({"tree": {"label": "l", "inner": [{"label": "l", "inner": [{"label": null}]}]}}),
            "$.tree.inner[0].inner[0].label",
        ),
    ] {
        assert_eq!(settled(schema, value).3, [path]);
    }
}

#[test]
fn all_marks_what_is_required_and_no_tags() {
    let schema = json!({
        "x-formwork-absent": "all",
        "allOf": [{"$ref": "#/$defs/base"}, {"required": ["id"]}],
        "properties": {
            "name": {"type": "string"}, "nick": {"type": "string"},
            "of": {"oneOf": [
                {"properties": {"kind": {"const": "k"}, "n": {"type": "integer"}}, "required": ["kind", "n"]},
                {"properties": {"kind": {"enum": ["l"]}, "n": {"type": "string"}}, "required": ["kind", "n"]},
            ]},
        },
        "required": ["name"],
        "if": {"properties": {"nick": {"const": "x"}}, "required": ["nick"]}, "then": {"maxProperties": 3},
        "$defs": {"base": {"properties": {"id": {"type": "integer"}}}},
    });
    let (value, removed, added, violations) = settled(&schema, json!({"nick": null, "of": {"kind": "l"}}));
    assert_eq!((removed, violations.len()), (vec!["$.nick".to_owned()], 0));
    assert_eq!(added, ["$.id", "$.name", "$.of.n"]);
    assert_eq!(value, json!({"of": {"kind": "l", "n": null}, "id": null, "name": null}));
    assert_eq!(
        settled(&schema, json!({"name": null, "id": null, "of": {"kind": null, "n": 1}})).3,
        ["$.of.kind"]
    );
}

#[test]
fn a_mistake_in_a_mark_is_an_error_of_the_schema() {
    let schema = |mark: Value, absent: Value| {
        json!({"type": "object", "properties": {"birth": {"type": "string", "x-formwork-absent": mark}, "list": {"items": {}}},
            "x-formwork-absent": absent})
    };
    assert!(compile(&schema(json!(true), json!("all"))).is_ok());
    assert!(compile(&schema(json!(false), json!(["$.birth", "$['birth']"]))).is_ok());
    for (schema, pointer, words) in [
        (schema(json!(true), json!("some")), "/x-formwork-absent", "a list of paths"),
        (schema(json!(true), json!(["birth"])), "/x-formwork-absent", "path"),
        (schema(json!(true), json!(["$.birth", "$.brith"])), "/x-formwork-absent/1", "$.birth"),
        (schema(json!(true), json!(["$.list[*]"])), "/x-formwork-absent/0", "names no member at `$.list[*]`"),
        (schema(json!(true), json!(["$"])), "/x-formwork-absent/0", "names no member at `$`"),
        (schema(json!("yes"), json!("all")), "/properties/birth/x-formwork-absent", "expected true"),
    ] {
        let error = compile(&schema).unwrap_err();
        assert_eq!(error.pointer, pointer, "{error}");
        assert!(error.message.contains(words), "{error}");
    }
}
