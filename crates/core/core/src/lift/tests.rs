use super::*;
use serde_json::json;

use crate::LiftOp;

fn lifted(value: Value, schema: Value, ops: &[(&str, Lift)]) -> (Value, Vec<Violation>) {
    let ops = ops.iter().map(|(at, lift)| LiftOp { at: (*at).to_owned(), lift: lift.clone() });
    lift(value, &Lowered { schema: Some(schema), lift: ops.collect(), ..Lowered::default() })
}

#[test]
fn a_recursive_schema_is_followed_as_deep_as_the_value_goes() {
    let schema = json!({
        "$ref": "#/$defs/node",
        "$defs": {"node": {"type": "object", "properties": {
            "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
        }, "required": ["next"]}},
    });
    let ops = [("/$defs/node", Lift::DropNull(vec!["next".into()]))];
    let value = json!({"next": {"next": {"next": null}}});
    assert_eq!(lifted(value, schema, &ops).0, json!({"next": {"next": {}}}));
}

#[test]
fn the_variant_that_the_value_took_is_lifted() {
    let variant = |tag: &str| json!({"type": "object", "properties": {"kind": {"const": tag}, "x": {}}, "required": ["kind", "x"]});
    let schema = json!({"anyOf": [variant("a"), variant("b")]});
    let ops = [("/anyOf/1/properties/x", Lift::ParseJson)];
    assert_eq!(
        lifted(json!({"kind": "b", "x": "[1]"}), schema.clone(), &ops).0,
        json!({"kind": "b", "x": [1]})
    );
    assert_eq!(lifted(json!({"kind": "a", "x": "[1]"}), schema, &ops).0, json!({"kind": "a", "x": "[1]"}));
}

#[test]
fn pairs_become_a_map_and_a_double_key_is_reported() {
    let schema = json!({"type": "object", "properties": {"m": {"type": "array"}}});
    let ops = [("/properties/m", Lift::PairsToMap)];
    let pairs = json!({"m": [{"key": "a", "value": 1}, {"key": "b", "value": 2}]});
    assert_eq!(lifted(pairs, schema.clone(), &ops).0, json!({"m": {"a": 1, "b": 2}}));
    let double = json!({"m": [{"key": "a", "value": 1}, {"key": "a", "value": 2}]});
    let (value, problems) = lifted(double.clone(), schema, &ops);
    assert_eq!(
        (value, problems[0].to_string().as_str()),
        (double, "uniqueKeys at $.m: expected each key once, found a")
    );
}

#[test]
fn a_wrapped_root_is_unwrapped_after_its_inside() {
    let schema =
        json!({"type": "object", "properties": {"value": {"type": "array", "items": {"type": "string"}}}});
    let ops = [("", Lift::Unwrap("value".into())), ("/properties/value/items", Lift::ParseJson)];
    assert_eq!(lifted(json!({"value": ["1", "{}"]}), schema.clone(), &ops).0, json!([1, {}]));
    assert_eq!(lifted(json!([2]), schema, &ops).0, json!([2]));
}

#[test]
fn members_are_reordered_and_unknown_ones_stay_last() {
    let ops = [("", Lift::Reorder(vec!["score".into(), "parts".into()]))];
    let (value, _) = lifted(json!({"parts": 1, "x": 2, "score": 3}), json!({}), &ops);
    assert_eq!(value.to_string(), r#"{"score":3,"parts":1,"x":2}"#);
}

#[test]
fn what_was_not_wrapped_is_lifted_inside_all_the_same() {
    let schema =
        json!({"type": "object", "properties": {"value": {"type": "array", "items": {"type": "string"}}}});
    let ops = [("", Lift::Unwrap("value".into())), ("/properties/value/items", Lift::ParseJson)];
    assert_eq!(lifted(json!(["[2]"]), schema, &ops).0, json!([[2]]));
    let nothing_sent =
        Lowered { lift: vec![LiftOp { at: String::new(), lift: ops[0].1.clone() }], ..Lowered::default() };
    assert_eq!(lift(json!({"value": [1]}), &nothing_sent).0, json!([1]));
    assert_eq!(lift(json!([1]), &nothing_sent).0, json!([1]));
}

#[test]
fn tuples_and_names_come_back_and_what_is_wrong_has_its_original_path() {
    let schema = json!({"type": "object", "properties": {
        "a_t": {"type": "object", "properties": {"_0": {}, "_1": {"type": "string"}}},
        "others": {"type": "array", "items": {"type": "object", "properties": {"key": {}, "value": {"type": "string"}}}},
    }});
    let ops = [
        ("/properties/a_t/properties/_1", Lift::ParseJson),
        ("/properties/a_t", Lift::Tuple { items: vec!["_0".into(), "_1".into()], rest: None }),
        ("/properties/others/items/properties/value", Lift::ParseJson),
        ("/properties/others", Lift::PairsToMap),
        ("", Lift::Rename(vec![("a_t".into(), "t".into())])),
        ("", Lift::Spread("others".into())),
    ];
    let answer = |json: &str, key: &str| {
        let pairs = json!([{"key": key, "value": json}]);
        lifted(json!({"a_t": {"_0": 1, "_1": json}, "others": pairs}), schema.clone(), &ops)
    };
    assert_eq!(answer("[2]", "x"), (json!({"t": [1, [2]], "x": [2]}), vec![]));
    let paths = |(_, problems): (Value, Vec<Violation>)| -> Vec<String> {
        problems.iter().map(|problem| format!("{} {}", problem.path, problem.rule)).collect()
    };
    assert_eq!(paths(answer("{", "x")), ["$.t[1] json", "$.x json"]);
    assert_eq!(paths(answer("3", "t")), ["$ uniqueKeys"]);
}

#[test]
fn variants_are_distinguished_by_their_contents() {
    let variant = |items: Value| json!({"type": "object", "properties": {"x": {"type": "array", "items": items}}, "required": ["x"]});
    let pair =
        json!({"type": "object", "properties": {"key": {}, "value": {}}, "required": ["key", "value"]});
    let schema = json!({"anyOf": [variant(pair), variant(json!({"type": "string"}))]});
    let ops = [("/anyOf/0/properties/x", Lift::PairsToMap), ("/anyOf/1/properties/x/items", Lift::ParseJson)];
    assert_eq!(lifted(json!({"x": ["[]"]}), schema.clone(), &ops).0, json!({"x": [[]]}));
    assert_eq!(lifted(json!({"x": [{"key": "a", "value": 1}]}), schema, &ops).0, json!({"x": {"a": 1}}));
}

#[test]
fn a_schema_that_refers_to_itself_alone_ends() {
    let ops = [("/properties/a", Lift::ParseJson)];
    assert_eq!(lifted(json!({"a": "1"}), json!({"$ref": "#"}), &ops).0, json!({"a": "1"}));
}

#[test]
fn leaves_are_the_value_that_they_were_taken_from() {
    let schema = json!({"type": "array", "minItems": 1});
    let lift = |list: Value| lifted(list, schema.clone(), &[("", Lift::Leaves)]);
    for value in [
        json!(null),
        json!("a"),
        json!({}),
        json!([]),
        json!([[[]]]),
        json!({"0": {"a": [1, {"b": null}, []]}, "1": {}, "": [["x"], "y"]}),
    ] {
        assert_eq!(lift(super::leaves(&value).unwrap()), (value, vec![]));
    }
    for value in [json!([]), json!([1]), json!([{"path": "a", "value": 1}])] {
        assert_eq!(lift(value.clone()), (value, vec![]));
    }
    for (paths, says) in [
        (json!([[], []]), "a second value at []"),
        (json!([["a"], ["a"]]), "a second value at [\"a\"]"),
        (json!([["a"], ["a", "b"]]), "a value inside of another kind of value at [\"a\",\"b\"]"),
        (json!([["a"], [0]]), "a value inside of another kind of value at [0]"),
        (json!([[0], ["a"]]), "a name in an array at [\"a\"]"),
        (json!([[1]]), "an item before the one in front of it at [1]"),
        (json!([[0], [2]]), "an item before the one in front of it at [2]"),
        (json!([["a", -1]]), "an item before the one in front of it at [\"a\",-1]"),
        (json!([vec![0; 121]]), "a path of 121 steps"),
    ] {
        let list = paths.as_array().unwrap().iter().map(|path| json!({"path": path, "value": 1})).collect();
        let (_, problems) = lift(Value::Array(list));
        let found: Vec<_> = problems.iter().map(|problem| problem.found.as_str()).collect();
        assert_eq!(found, [says]);
    }
}

#[test]
fn leaves_go_as_deep_as_parsers_read() {
    let nested = |depth| (0..depth).fold(json!(1), |inner, _| json!([inner]));
    assert_eq!(leaves(&nested(120)).unwrap()[0]["path"].as_array().unwrap().len(), 120);
    assert_eq!(leaves(&nested(121)), None);
}

#[test]
fn what_has_no_place_in_the_original_is_reported() {
    let pairs = Lift::PairsToMap;
    let tuple = |rest: Option<&str>| Lift::Tuple {
        items: vec!["_0".into(), "_1".into()],
        rest: rest.map(Into::into),
    };
    let rename = Lift::Rename(vec![("a_t".into(), "t".into())]);
    let unlist = Lift::Unlist(vec!["a".into(), "b".into()]);
    let choice = Lift::Choice { names: vec!["a".into(), "b".into()], null: true };
    for (lift, answer, expected, found) in [
        (
            &pairs,
            json!([{"key": "a", "value": 1, "note": "n"}]),
            json!({"a": 1}),
            vec!["$.a: `note` as well: \"n\""],
        ),
        (
            &pairs,
            json!([{"key": "a", "value": 1}, {"key": "b"}]),
            json!([{"key": "a", "value": 1}, {"key": "b"}]),
            vec![],
        ),
        (&tuple(None), json!({"_0": 1, "_1": 2, "_2": 3}), json!([1, 2]), vec!["$: `_2` as well: 3"]),
        (&tuple(None), json!({"note": "n"}), json!([]), vec!["$: `note` as well: \"n\""]),
        (&tuple(Some("rest")), json!({"_0": 1, "_1": 2, "rest": [3]}), json!([1, 2, 3]), vec![]),
        (
            &tuple(Some("rest")),
            json!({"_0": 1, "_1": 2, "rest": "x"}),
            json!([1, 2]),
            vec!["$: `rest` as well: \"x\""],
        ),
        (&rename, json!({"a_t": 1, "t": 2}), json!({"a_t": 1, "t": 2}), vec!["$: t"]),
        (&Lift::ParseJson, json!("{\"a\": 1, \"a\": 2}"), json!({"a": 2}), vec!["$: a"]),
        (&unlist, json!({"a": [1], "b": [2, 3]}), json!({"a": 1, "b": [2, 3]}), vec!["$: 2 in `b`"]),
        (&choice, json!({"a": [1], "b": [2]}), json!({"a": [1], "b": [2]}), vec!["$: 2"]),
        (&choice, json!({"a": [], "b": []}), json!(null), vec![]),
    ] {
        let (value, problems) = lifted(answer.clone(), json!({}), &[("", lift.clone())]);
        let problems: Vec<_> = problems.iter().map(|one| format!("{}: {}", one.path, one.found)).collect();
        assert_eq!((value, problems.iter().map(String::as_str).collect()), (expected, found), "{answer}");
    }
}
