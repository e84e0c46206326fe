//! The body of a request: a JSON object whose members are read where they are needed.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use axum::body::Bytes;
use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use serde_json::{Error, Value};

/// A JSON object and its text. Only the places of its members are known: most of a body is passed on or read once.
#[derive(Debug)]
pub(crate) struct Document {
    text: String,
    /// The names of the members and the places of their values in the text, in order.
    members: Vec<(String, Range<usize>)>,
}

impl Document {
    /// Reads a body.
    ///
    /// # Errors
    /// The error of the parser, also for a body that is not an object.
    pub(crate) fn read(text: String) -> Result<Self, Error> {
        let place = |value: Raw<'_>| {
            let start = (value.0.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
            start..start + value.0.len()
        };
        let members = Raw(&text).members()?.into_iter();
        let members = members.map(|(name, value)| (name.into_owned(), place(value))).collect();
        Ok(Self { text, members })
    }

    /// Returns the text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the members in order. A name may be there twice; the last one counts.
    pub(crate) fn members(&self) -> impl DoubleEndedIterator<Item = (&str, Raw<'_>)> {
        let raw = |place: &Range<usize>| Raw(self.text.get(place.clone()).unwrap_or_default());
        self.members.iter().map(move |(name, place)| (name.as_str(), raw(place)))
    }

    /// Returns the value at a path of names; `None` if it is missing.
    pub(crate) fn get<const LENGTH: usize>(&self, path: [&str; LENGTH]) -> Option<Raw<'_>> {
        let (first, rest) = path.split_first()?;
        let value = self.members().rfind(|(name, _)| name == first)?.1;
        rest.iter().try_fold(value, |value, name| {
            let members = value.members().ok()?;
            Some(members.into_iter().rfind(|(member, _)| member == name)?.1)
        })
    }

    /// Returns whether the value at a path is missing, `null`, or an empty list or text.
    pub(crate) fn is_empty<const LENGTH: usize>(&self, path: [&str; LENGTH]) -> bool {
        self.get(path).is_none_or(|value| match value.0.as_bytes() {
            b"null" | b"\"\"" => true,
            [b'[', inner @ .., b']'] => inner.iter().all(u8::is_ascii_whitespace),
            _ => false,
        })
    }

    /// Returns the text at a path; `None` if there is no text.
    pub(crate) fn word<const LENGTH: usize>(&self, path: [&str; LENGTH]) -> Option<String> {
        self.get(path)?.read().ok()
    }

    /// Returns the text with another name of the model.
    ///
    /// # Errors
    /// The error of the parser for a body that has to be rewritten, because a member is there twice and servers differ in which
    /// one they read, or because no model is named.
    pub(crate) fn with_model(&self, model: &str) -> Result<Bytes, Error> {
        let written = serde_json::to_string(model)?;
        let mut names: Vec<&str> = self.members.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        let is_unique = names.windows(2).all(|pair| pair.first() != pair.last());
        let place = self.members.iter().find(|(name, _)| is_unique && name == "model");
        let Some((_, place)) = place else {
            let mut value = self.value()?;
            value["model"] = model.into();
            return serde_json::to_vec(&value).map(Bytes::from);
        };
        let (before, after) = (self.text.get(..place.start), self.text.get(place.end..));
        Ok([before.unwrap_or_default(), &written, after.unwrap_or_default()].concat().into())
    }

    /// Parses the whole body.
    ///
    /// # Errors
    /// The error of the parser, for a body that is nested too deep or has an invalid escape.
    pub(crate) fn value(&self) -> Result<Value, Error> {
        Raw(&self.text).read()
    }
}

/// The text of a JSON value within a body. Its syntax was checked; escapes, the range of numbers and the depth were not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Raw<'t>(&'t str);

impl<'t> Raw<'t> {
    /// Returns the text.
    pub(crate) const fn text(self) -> &'t str {
        self.0
    }

    /// Returns whether it is `null`.
    pub(crate) fn is_null(self) -> bool {
        self.0 == "null"
    }

    /// Returns whether it is a string.
    pub(crate) fn is_text(self) -> bool {
        self.0.starts_with('"')
    }

    /// Parses it.
    ///
    /// # Errors
    /// The error of the parser.
    pub(crate) fn read<T: DeserializeOwned>(self) -> Result<T, Error> {
        serde_json::from_str(self.0)
    }

    /// Returns the items of a list.
    ///
    /// # Errors
    /// The error of the parser for anything else.
    pub(crate) fn items(self) -> Result<Vec<Self>, Error> {
        let items: Vec<&RawValue> = serde_json::from_str(self.0)?;
        Ok(items.into_iter().map(|item| Self(item.get())).collect())
    }

    /// Returns the members of an object.
    ///
    /// # Errors
    /// The error of the parser for anything else.
    pub(crate) fn members(self) -> Result<Vec<(Cow<'t, str>, Self)>, Error> {
        let mut deserializer = serde_json::Deserializer::from_str(self.0);
        let members = deserializer.deserialize_map(Members)?;
        deserializer.end()?;
        Ok(members)
    }
}

/// Writes what the value is, for an error.
impl fmt::Display for Raw<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0.as_bytes().first() {
            Some(b'[') => "a list",
            Some(b'{') => "an object",
            Some(b'"') if self.read::<String>().is_err() => "a string with an invalid escape",
            Some(b'"') => "a string",
            _ => self.0,
        })
    }
}

struct Members;

/// The name of a member, which is borrowed unless it has escapes.
#[derive(Deserialize)]
struct Name<'t>(#[serde(borrow)] Cow<'t, str>);

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(Cow<'de, str>, Raw<'de>)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::with_capacity(8);
        while let Some((Name(name), value)) = map.next_entry::<Name<'de>, &'de RawValue>()? {
            members.push((name, Raw(value.get())));
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((".{0,6}", inner), 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    fn name() -> impl Strategy<Value = String> {
        prop_oneof![
            prop::sample::select(vec!["messages", "input", "tools", "stream", "system"])
                .prop_map(str::to_owned),
            ".{0,6}",
        ]
    }

    proptest! {
        #[test]
        fn a_document_is_its_text_with_another_model(
            members in prop::collection::vec((name(), value()), 0..8),
            at in 0_usize..8,
            given in ".{0,8}",
            set in ".{0,8}",
            repeats in any::<bool>(),
        ) {
            let pairs: Vec<(String, Value)> = {
                let mut pairs = members;
                pairs.insert(at.min(pairs.len()), ("model".to_owned(), given.clone().into()));
                if repeats {
                    pairs.push(pairs[0].clone());
                }
                pairs
            };
            let written: Vec<String> =
                pairs.iter().map(|(name, value)| format!(" {} :\n{value} ", json!(name))).collect();
            let text = format!("{{{}}}", written.join(","));
            let whole: Value = serde_json::from_str(&text).unwrap();
            let document = Document::read(text.clone()).unwrap();
            for (name, value) in whole.as_object().unwrap() {
                prop_assert_eq!(&document.get([name]).unwrap().read::<Value>().unwrap(), value);
                prop_assert_eq!(document.word([name]), value.as_str().map(str::to_owned));
                let is_empty = value.is_null() || *value == json!([]) || *value == json!("");
                prop_assert_eq!(document.is_empty([name]), is_empty);
                for (inner, value) in value.as_object().into_iter().flatten() {
                    prop_assert_eq!(&document.get([name, inner]).unwrap().read::<Value>().unwrap(), value);
                }
                for (nth, item) in value.as_array().into_iter().flatten().enumerate() {
                    let items = document.get([name]).unwrap().items().unwrap();
                    prop_assert_eq!(&items[nth].read::<Value>().unwrap(), item);
                }
            }
            prop_assert!(document.is_empty(["missing", "member"]));
            let mut changed = whole.clone();
            changed["model"] = set.clone().into();
            let sent = document.with_model(&set).unwrap();
            prop_assert_eq!(serde_json::from_slice::<Value>(&sent).unwrap(), changed);
            // Only the name changes; even the white space stays.
            if pairs.len() == whole.as_object().unwrap().len() {
                let same = document.with_model(&given).unwrap();
                prop_assert_eq!(&same[..], text.as_bytes());
            }
            prop_assert_eq!(document.value().unwrap(), whole);
        }
    }

    #[test]
    fn text_that_is_no_object_is_refused() {
        for text in ["", "[]", "5", "{", "{\"a\": 1", "{\"a\": 1}x", "{\"messages\": [}", "{\"model\": tru}"]
        {
            assert!(Document::read(text.to_owned()).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_nested_too_deep_is_an_error_where_it_is_read() {
        let deep = format!("{}1{}", "[".repeat(500_000), "]".repeat(500_000));
        let document = Document::read(format!("{{\"tools\": {deep}}}")).unwrap();
        assert!(document.get(["tools"]).unwrap().read::<Value>().is_err() && document.value().is_err());
        // Brackets in strings do not nest.
        let document = Document::read(json!({"prompt": "[".repeat(5_000)}).to_string()).unwrap();
        assert_eq!(document.value().unwrap()["prompt"], "[".repeat(5_000));
    }
}
