use formwork_wire::lenient::{Count, Fill, Leaf, Read, Type, read_slice, read_str};
use serde::de::{DeserializeSeed as _, MapAccess};

#[derive(Debug, Default, PartialEq)]
struct Item<'de> {
    text: Leaf<'de>,
    count: Count,
    inner: Vec<Item<'de>>,
}

impl<'de> Read<'de> for Item<'de> {
    fn member<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        match name {
            "text" => self.text = members.next_value()?,
            "count" => self.count = members.next_value()?,
            "inner" => _ = members.next_value_seed(Fill(&mut self.inner))?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn read(json: &str) -> Item<'_> {
    let (mut item, mut same) = (Item::default(), Item::default());
    read_str(json, &mut item).unwrap();
    read_slice(json.as_bytes(), &mut same).unwrap();
    assert_eq!(item, same);
    item
}

#[test]
fn values_of_unexpected_types_are_missing() {
    for json in [
        "[]",
        "7",
        "\"text\"",
        "null",
        r#"{"text": null, "count": "7", "inner": {"text": "a"}}"#,
        r#"{"count": [7], "inner": -1, "other": {"text": "a"}}"#,
        r#"{"count": {"a": 7}, "inner": true}"#,
    ] {
        assert_eq!(read(json), Item::default(), "{json}");
    }
    let item = read(r#"{"inner": [7, {"text": "a"}, []]}"#);
    let texts: Vec<_> = item.inner.iter().map(|item| item.text.as_str()).collect();
    assert_eq!(texts, [None, Some("a"), None]);
}

#[test]
fn the_last_of_duplicates_counts() {
    let item = read(r#"{"text": "a", "count": 1, "text": "b", "count": 2.5}"#);
    assert_eq!((item.text.as_str(), item.count.0), (Some("b"), Some(2)));
}

#[test]
fn escapes_are_read_in_names_and_texts() {
    let item = read(r#"{"te\u0078t": "L\u0069sb\n"}"#);
    assert_eq!(item.text.as_str(), Some("Lisb\n"));
}

#[test]
fn every_value_keeps_its_json() {
    for (json, written) in
        [("null", ""), ("true", "true"), ("\"a\"", "a"), ("[1, {}]", "[1,{}]"), ("-1.5", "-1.5")]
    {
        let leaf: Leaf<'_> = serde_json::from_str(json).unwrap();
        let value: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_value(&leaf).unwrap(), value);
        assert_eq!(leaf.into_json(), written);
    }
}

#[test]
fn syntax_errors_are_errors() {
    for json in ["", "{", r#"{"text": }"#, r#"{"other": tru}"#, "{} {}"] {
        assert!(read_str(json, &mut Item::default()).is_err(), "{json}");
    }
    let mut json = serde_json::Deserializer::from_str("{}");
    assert_eq!(Fill(&mut Item::default()).deserialize(&mut json).unwrap(), Type::Object);
}
