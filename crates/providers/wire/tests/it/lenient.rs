use std::borrow::Cow;

use formwork_wire::lenient::{Count, Leaf, List, Object, from_slice, from_str};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Item<'a> {
    #[serde(borrow)]
    text: Leaf<'a>,
    count: Count,
    part: Object<Part<'a>>,
    inner: List<Object<Item<'a>>>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Part<'a> {
    #[serde(borrow)]
    text: Leaf<'a>,
}

fn read(json: &str) -> Item<'_> {
    let item: Item<'_> = from_str(json).unwrap();
    assert_eq!(item, from_slice(json.as_bytes()).unwrap());
    item
}

/// Any JSON value, in which the names of the members above are frequent.
fn any_json() -> impl Strategy<Value = Value> {
    let name = prop_oneof!["text", "count", "part", "inner", "[a-c]{1}"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e9_f64..1e9).prop_map(Value::from),
        ".{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_value_in_any_place_is_accepted(value in any_json()) {
        let text = value.to_string();
        let item = read(&text);
        let member = |name: &str| value.get(name).filter(|_| value.is_object());
        prop_assert_eq!(item.text.as_str(), member("text").and_then(Value::as_str));
        prop_assert_eq!(serde_json::to_value(&item.text).unwrap(), member("text").cloned().unwrap_or_default());
        prop_assert_eq!(item.part.0.is_some(), member("part").is_some_and(Value::is_object));
        let items = member("inner").and_then(Value::as_array).map(Vec::len);
        prop_assert_eq!(item.inner.0.map(|items| items.len()), items);
    }

    #[test]
    fn of_a_repeated_member_the_last_counts(values in prop::collection::vec(any_json(), 1..4)) {
        for name in ["text", "count", "part", "inner"] {
            let members: Vec<_> = values.iter().map(|value| format!("{name:?}: {value}")).collect();
            let all = format!("{{{}}}", members.join(", "));
            let last = format!("{{{}}}", members.last().unwrap());
            prop_assert_eq!(read(&all), read(&last));
            let [all, last] = [all, last].map(|item| format!("{{\"inner\": [{item}], \"text\": \"after\"}}"));
            prop_assert_eq!(read(&all), read(&last));
        }
    }

    #[test]
    fn invalid_json_is_an_error(value in any_json(), at in any::<prop::sample::Index>()) {
        let text = json!({"inner": [value]}).to_string();
        let cut = text.floor_char_boundary(at.index(text.len()));
        prop_assert!(from_str::<Item<'_>>(&text[..cut]).is_err());
    }
}

#[test]
fn a_value_of_an_unexpected_type_is_missing() {
    for json in [
        "[]",
        "7",
        "\"text\"",
        "null",
        // An array is not read as the members of an object in their order.
        r#"["a", 1, {}, []]"#,
        r#"{"text": null, "count": "7", "part": ["a"], "inner": {"text": "a"}}"#,
        r#"{"count": [7], "part": "a", "inner": -1, "other": {"text": "a"}}"#,
        r#"{"count": {"a": 7}, "part": 1.5, "inner": true}"#,
    ] {
        assert_eq!(read(json), Item::default(), "{json}");
    }
    let item = read(r#"{"inner": [7, {"text": "a"}, []]}"#);
    let texts: Vec<_> = item.inner.iter().map(|item| item.0.as_ref()?.text.as_str()).collect();
    assert_eq!(texts, [None, Some("a"), None]);
}

#[test]
fn texts_are_borrowed_unless_they_have_escapes() {
    let borrowed = read(r#"{"text": "Lisb", "part": {"text": "on"}}"#);
    assert!(matches!(borrowed.text, Leaf::Text(Cow::Borrowed("Lisb"))));
    assert!(matches!(borrowed.part.0.unwrap().text, Leaf::Text(Cow::Borrowed("on"))));
    let item = read(r#"{"te\u0078t": "L\u0069sb\n"}"#);
    assert_eq!(item.text.as_str(), Some("Lisb\n"));
}

#[test]
fn every_leaf_keeps_its_json() {
    for (json, written) in [
        ("null", ""),
        ("true", "true"),
        ("\"a\"", "a"),
        ("[1, {}]", "[1,{}]"),
        ("-1.5", "-1.5"),
        // Arguments of tools are documents, whose numbers keep their digits.
        (
            r#"{"a": 123456789012345678901, "b\"": [{"c": 1.50}]}"#,
            r#"{"a":123456789012345678901,"b\"":[{"c": 1.50}]}"#,
        ),
    ] {
        let leaf: Leaf<'_> = serde_json::from_str(json).unwrap();
        let value: Value = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_value(&leaf).unwrap(), value);
        assert_eq!(leaf.into_json(), written);
    }
}

#[test]
fn syntax_errors_are_errors() {
    for json in ["", "{", r#"{"text": }"#, r#"{"other": tru}"#, "{} {}", r#"{"text":"\x,"text":1}"#] {
        assert!(from_str::<Item<'_>>(json).is_err(), "{json}");
    }
}
