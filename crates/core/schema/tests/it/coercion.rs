//! Values that do not fit their schema: converted, dropped, replaced or left to the next request.

use std::sync::Arc;

use formwork_core::{
    Coerce, Coercion, Context, Contract, Inline, JsonPath, Level, Outlook, Reader, Rule, Settled, normalise,
    without_marks,
};
use formwork_schema::{compile, contract_for};
use proptest::prelude::*;
use serde_json::{Value, json};

fn contract(schema: &Value, coercion: Coercion) -> Contract {
    contract_for(Arc::new(Inline::new("any", schema.clone()))).unwrap().with_coercion(coercion)
}

fn settled(schema: &Value, text: &str, coercion: Coercion) -> Settled {
    let value = serde_json::from_str(text).unwrap();
    contract(schema, coercion).settle_text(value, Some(text), &Context::EMPTY)
}

/// A schema, a value that does not fit it, and the value that a conversion makes of it; `null` where there is none.
fn cases() -> Vec<(Value, &'static str, Value)> {
    let integer = || json!({"type": "integer"});
    let listed = || json!({"enum": ["in progress", "Done", 3]});
    let none = Value::Null;
    vec![
        (integer(), r#""34""#, json!(34)),
        (integer(), r#"" -7 ""#, json!(-7)),
        (json!({"type": "number"}), r#""12.50""#, json!(12.5)),
        (json!({"type": "string"}), "12.50", json!("12.50")),
        (json!({"type": "string"}), "0.30000000000000000000", json!("0.30000000000000000000")),
        (json!({"type": "string"}), "true", json!("true")),
        (json!({"type": "boolean"}), r#""True""#, json!(true)),
        (json!({"type": "array", "items": integer()}), "5", json!([5])),
        (json!({"type": "array", "items": integer()}), r#""5""#, json!([5])),
        (json!({"type": "array", "items": integer()}), r#""[1, 2]""#, json!([1, 2])),
        (json!({"type": "object", "required": ["a"]}), r#""{\"a\": 1}""#, json!({"a": 1})),
        (listed(), r#""In  Progress""#, json!("in progress")),
        (listed(), r#""3""#, json!(3)),
        (json!({"anyOf": [integer(), {"type": "null"}]}), r#""4""#, json!(4)),
        (json!({"allOf": [integer(), {"minimum": 3}]}), r#""4""#, json!(4)),
        // A conversion that loses something, has two results, or does not fit, is none.
        (integer(), r#""12,111""#, none.clone()),
        (integer(), r#""034""#, none.clone()),
        (integer(), r#""3.5""#, none.clone()),
        (integer(), r#""123456789012345678901""#, none.clone()),
        (json!({"type": "number"}), r#""12345678901234567.89""#, none.clone()),
        (json!({"type": "integer", "maximum": 30}), r#""34""#, none.clone()),
        (json!({"type": "array", "items": integer()}), r#""x""#, none.clone()),
        (json!({"enum": ["a", "A"]}), r#"" a""#, none.clone()),
        (json!({"anyOf": [{"type": "boolean"}, {"enum": ["TRUE"]}]}), r#""true""#, none.clone()),
        (json!({"type": "string"}), "null", none),
    ]
}

#[test]
fn only_conversions_that_lose_nothing_and_have_one_result_are_made() {
    for (schema, text, expected) in cases() {
        let settled = settled(&schema, text, Coercion::Fix);
        if expected.is_null() {
            assert_eq!(settled.value, serde_json::from_str::<Value>(text).unwrap(), "{schema} {text}");
            assert!(settled.coerced.is_empty() && !settled.judgement.is_accepted(), "{schema} {text}");
        } else {
            assert_eq!(settled.value, expected, "{schema} {text}");
            assert!(settled.judgement.is_accepted() && !settled.coerced.is_empty(), "{schema} {text}");
        }
    }
}

#[test]
fn nothing_is_converted_where_the_model_is_asked() {
    for (schema, text, _) in cases() {
        for coercion in [Coercion::Ask, Coercion::Strict] {
            let settled = settled(&schema, text, coercion);
            assert!(settled.coerced.is_empty() && !settled.judgement.is_accepted(), "{schema} {text}");
        }
    }
}

#[test]
fn each_change_has_its_path_and_the_original_text() {
    let schema = json!({"properties": {"age": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}}});
    let settled = settled(&schema, r#"{"age": "34", "tags": 1.50, "other": "5"}"#, Coercion::Fix);
    assert_eq!(settled.value, json!({"age": 34, "tags": ["1.50"], "other": "5"}));
    let told: Vec<_> = settled.coerced.iter().map(|one| format!("{}: {}", one.path, one.message)).collect();
    assert_eq!(
        told,
        [
            r#"$.age: "34" was read as 34"#,
            "$.tags: one value stood for a list: 1.50",
            r#"$.tags[0]: 1.50 was read as "1.50""#
        ]
    );
    let schema = json!({"properties": {"a": {"type": "string"}, "b": {"type": "string", "default": "x", "maxLength": 2}}});
    for (coercion, told) in [
        (
            Coercion::Drop,
            ["$.a: 12.50 was read as \"12.50\"", "$.b: 1.20e3 does not fit the contract and was left out"],
        ),
        (Coercion::Default, ["$.a: 12.50 was read as \"12.50\"", "$.b: 1.20e3 was read as \"x\""]),
    ] {
        let settled = self::settled(&schema, r#"{"a": 12.50, "b": 1.20e3}"#, coercion);
        let found: Vec<_> =
            settled.coerced.iter().map(|one| format!("{}: {}", one.path, one.message)).collect();
        assert_eq!(
            (found.len(), &found[0], &found[found.len() - 1]),
            (2, &told[0].to_owned(), &told[1].to_owned())
        );
    }
}

#[test]
fn a_place_has_its_own_coercion() {
    let text = json!({"type": "integer", "default": 7});
    let schema = |a: &str, b: &str| {
        let mut schema = json!({"properties": {"a": text, "b": {"$ref": "#/$defs/b"}}, "required": ["b"],
            "$defs": {"b": {"properties": {"c": text}}}});
        schema["properties"]["a"]["x-formwork-coerce"] = json!(a);
        format!("$.b.c={b}").parse::<Coerce>().unwrap().declare(&mut schema);
        schema
    };
    for (a, b, given, expected) in [
        ("drop", "ask", r#"{"a": "x", "b": {"c": 1}}"#, json!({"b": {"c": 1}})),
        ("drop", "ask", r#"{"a": "4", "b": {"c": "1"}}"#, json!({"a": 4, "b": {"c": "1"}})),
        ("ask", "fix", r#"{"a": "4", "b": {"c": "1"}}"#, json!({"a": "4", "b": {"c": 1}})),
        ("default", "drop", r#"{"a": "x", "b": {"c": "x"}}"#, json!({"a": 7, "b": {}})),
        ("default", "default", r#"{"a": [], "b": {"c": {}}}"#, json!({"a": 7, "b": {"c": 7}})),
    ] {
        assert_eq!(settled(&schema(a, b), given, Coercion::Ask).value, expected, "{a} {b} {given}");
    }
    // A required member is never dropped, and one that is missing has its default.
    let required = |name: &str| json!({"properties": {"a": {"type": "integer", "default": 7, "x-formwork-coerce": name}}, "required": ["a"]});
    assert_eq!(settled(&required("drop"), r#"{"a": "x"}"#, Coercion::Ask).value, json!({"a": "x"}));
    assert_eq!(settled(&required("default"), "{}", Coercion::Ask).value, json!({"a": 7}));
    assert_eq!(settled(&required("fix"), "{}", Coercion::Ask).value, json!({}));
}

#[test]
fn items_are_left_out_only_where_drop_is_set_for_the_items() {
    let item = json!({"type": "object", "properties": {"n": {"type": "integer"}, "note": {"type": "string"}}, "required": ["n"]});
    let schema = |places: &[&str], least: u64| {
        let mut schema = json!({"type": "object", "properties": {"rows": {"type": "array", "items": item, "minItems": least}},
            "required": ["rows"]});
        places.iter().for_each(|place| place.parse::<Coerce>().unwrap().declare(&mut schema));
        schema
    };
    let row = |nth: usize| if nth % 3 == 1 { json!({"n": format!("x{nth}")}) } else { json!({"n": nth}) };
    let rows: Vec<Value> = (0..120).map(row).collect();
    let text = json!({"rows": rows}).to_string();
    let dropped = settled(&schema(&["$.rows[*]=drop"], 0), &text, Coercion::Ask);
    let right: Vec<Value> = (0..120).filter(|nth| nth % 3 != 1).map(row).collect();
    assert_eq!(dropped.value, json!({"rows": right}));
    assert!(dropped.judgement.is_accepted());
    let told: Vec<_> = dropped.coerced.iter().map(|one| format!("{}: {}", one.path, one.message)).collect();
    let expected =
        |nth| format!("$.rows[{nth}]: {{\"n\":\"x{nth}\"}} does not fit the contract and was left out");
    assert_eq!(told, (0..120).filter(|nth| nth % 3 == 1).map(expected).collect::<Vec<_>>());
    for places in [&["$.rows=drop"][..], &["$=drop"], &["$.rows[*].n=drop"], &["$.rows[*]=fix"], &[]] {
        let settled = settled(&schema(places, 0), &text, Coercion::Ask);
        assert_eq!((settled.value, settled.coerced.len()), (json!({"rows": rows}), 0), "{places:?}");
    }
    // The innermost part that may be left out is; and a list that has to be long is asked for again.
    let inner = r#"{"rows": [{"n": 1, "note": 2e3}, {"n": "x", "note": 4}, {"n": 5}]}"#;
    let places = &["$.rows[*]=drop", "$.rows[*].note=drop"];
    let of_inner = |least| settled(&schema(places, least), inner, Coercion::Ask).value;
    assert_eq!(of_inner(2), json!({"rows": [{"n": 1, "note": "2e3"}, {"n": 5}]}));
    assert_eq!(of_inner(3)["rows"][1]["n"], json!("x"));
}

#[test]
fn items_that_do_not_stand_in_the_source_are_left_out() {
    let mut schema = json!({"properties": {"names": {"type": "array", "items": {"type": "string"}}}});
    "$.names[*]=drop".parse::<Coerce>().unwrap().declare(&mut schema);
    let contract = contract(&schema, Coercion::Ask).with_rule(Rule::grounded("$.names[*]".parse().unwrap()));
    let cx = Context { source: "Ada and Bob met Zed.", data: &Value::Null };
    let of = |names: &[&str]| contract.settle_text(json!({"names": names}), None, &cx);
    let settled = of(&["Eve", "Ada", "Ada", "Mallory", "Zed", "Trent"]);
    assert_eq!((settled.value, settled.coerced.len()), (json!({"names": ["Ada", "Ada", "Zed"]}), 3));
    assert!(of(&["Eve"]).judgement.is_accepted() && of(&["Bob"]).coerced.is_empty());
}

#[test]
fn null_for_an_optional_member_stays_where_the_contract_is_strict() {
    let schema = json!({"properties": {"nick": {"type": "string"}}});
    assert_eq!(settled(&schema, r#"{"nick": null}"#, Coercion::Ask).value, json!({}));
    assert_eq!(settled(&schema, r#"{"nick": null}"#, Coercion::Strict).value, json!({"nick": null}));
}

#[test]
fn a_text_that_no_conversion_makes_fit_ends_the_reading() {
    for (schema, text, at) in [
        (json!({"properties": {"a": {"type": "integer"}}}), r#"{"a": "x", "b": 1}"#, 8),
        (json!({"properties": {"a": {"enum": ["in progress", "done"]}}}), r#"{"a": "open", "b": 1}"#, 11),
        (json!({"properties": {"a": {"type": "integer"}}}), r#"{"a": [1], "b": 1}"#, 6),
    ] {
        let (contract, mut reader) = (contract(&schema, Coercion::Fix), Reader::new(Level::Clean));
        let outlook = reader.push(&contract.outline(), text, |_| {});
        assert!(
            matches!(outlook, Outlook::Impossible { at: found, .. } if *found == at),
            "{text}: {outlook:?}"
        );
    }
}

#[test]
fn doubtful_conversions_are_guesses() {
    for (schema, text, expected) in [
        (json!({"type": "integer"}), r#""12,111""#, json!(12111)),
        (json!({"type": "number"}), r#""1/5""#, json!(0.2)),
        (json!({"type": "number"}), r#""-2,000.50""#, json!(-2000.5)),
        (json!({"type": "boolean"}), r#""yes""#, json!(true)),
        (json!({"anyOf": [{"const": 2}, {"const": 3}]}), r#""The answer is 2.""#, json!(2)),
        (json!({"enum": ["ONE", "TWO"]}), r#""The answer is Two.""#, json!("TWO")),
        (json!({"enum": ["ONE", "TWO"], "x-enum-aliases": {"ONE": "k1"}}), r#""k1""#, json!("ONE")),
        (json!({"properties": {"a": {"x-alias": "b"}}, "required": ["a"]}), r#"{"b": 1}"#, json!({"a": 1})),
        (
            json!({"properties": {"a": {"type": "object", "required": ["b"]}}, "required": ["a"]}),
            r#"{"b": 1}"#,
            json!({"a": {"b": 1}}),
        ),
        (json!({"type": "array", "items": {"type": "string"}}), r#""[a, b]""#, json!(["a", "b"])),
    ] {
        assert_ne!(settled(&schema, text, Coercion::Fix).value, expected, "{schema} {text}");
        let guessed = settled(&schema, text, Coercion::Guess);
        assert_eq!(guessed.value, expected, "{schema} {text}");
        assert!(guessed.judgement.is_accepted() && !guessed.coerced.is_empty(), "{schema} {text}");
    }
    // Of several numbers in a text, none is likelier.
    let schema = json!({"anyOf": [{"const": 2}, {"const": 3}]});
    assert!(!settled(&schema, r#""2 or 3""#, Coercion::Guess).judgement.is_accepted());
}

#[test]
fn a_wrong_mark_is_a_mistake_and_no_model_sees_a_right_one() {
    for (mark, pointer, message) in [
        (json!("skip"), "/x-formwork-coerce", "found `skip`"),
        (json!({"$.b": "fix"}), "/x-formwork-coerce", "$.b"),
        (json!(3), "/x-formwork-coerce", "expected a name"),
    ] {
        let schema = json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false, "x-formwork-coerce": mark});
        let error = compile(&schema).unwrap_err();
        assert!(error.pointer == pointer && error.message.contains(message), "{error}");
    }
    let schema = json!({"properties": {"a": {"type": "string", "x-formwork-coerce": "drop"}}, "x-formwork-coerce": "ask"});
    compile(&schema).unwrap();
    assert!(!normalise(&schema).to_string().contains("x-formwork"));
    assert!(!without_marks(&schema).to_string().contains("x-formwork"));
}

/// A schema whose value at `$.x` may be wrong beside others that are right.
fn documents() -> impl Strategy<Value = (Value, Value)> {
    let schemas = cases().into_iter().map(|(schema, ..)| schema).collect::<Vec<_>>();
    let values =
        cases().into_iter().map(|(_, text, _)| serde_json::from_str(text).unwrap()).collect::<Vec<Value>>();
    let schema = || prop::sample::select(schemas.clone());
    let value = || prop::sample::select(values.clone());
    (schema(), schema(), value(), value()).prop_map(|(x, y, of_x, of_y)| {
        let schema = json!({"properties": {"x": x, "y": {"type": "array", "items": y}}, "required": ["x"]});
        (schema, json!({"x": of_x, "y": [of_y, of_x]}))
    })
}

proptest! {
    /// A reader never calls a text impossible that the contract accepts after its conversions.
    #[test]
    fn a_reader_waits_for_what_is_converted((schema, value) in documents(), at in any::<prop::sample::Index>()) {
        let contract = contract(&schema, Coercion::Fix);
        let text = value.to_string();
        let (first, second) = text.split_at(at.index(text.len()));
        let (outline, mut reader) = (contract.outline(), Reader::new(Level::Clean));
        for chunk in [first, second] {
            reader.push(&outline, chunk, |_| {});
        }
        let accepts = contract.settle_text(value, Some(&text), &Context::EMPTY).judgement.is_accepted();
        let is_impossible = matches!(reader.outlook(), Outlook::Impossible { .. });
        prop_assert!(!(accepts && is_impossible), "{:?}", reader.outlook());
    }

    /// A value at which there is no error stays as it is, the changes never add an error, and a changed document is not changed again.
    #[test]
    fn only_errors_are_touched((schema, value) in documents(), coercion in prop::sample::select(vec![Coercion::Fix, Coercion::Guess])) {
        let contract = contract(&schema, coercion);
        let before = contract.judge_all(&value, &Context::EMPTY).violations;
        let settled = contract.settle(value.clone(), &Context::EMPTY);
        let after = settled.judgement.violations;
        prop_assert!(after.len() <= before.len());
        prop_assert_eq!(settled.coerced.is_empty(), settled.value == value);
        for path in ["$.x", "$.y[0]", "$.y[1]"] {
            let path: JsonPath = path.parse().unwrap();
            let is_wrong = before.iter().any(|one| one.path.is_within(&path) || path.is_within(&one.path));
            prop_assert!(is_wrong || coercion == Coercion::Guess || path.get(&settled.value) == path.get(&value));
        }
        let again = contract.settle(settled.value.clone(), &Context::EMPTY);
        prop_assert_eq!(again.value, settled.value);
    }
}
