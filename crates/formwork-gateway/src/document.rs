//! The body of a request, whose dialogue is read only where it is needed.

use std::fmt;
use std::ops::Range;

use axum::body::Bytes;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Error, Map, Value};

/// The members that hold the dialogue in one of the protocols. They are most of a body, and nothing in them decides whether the
/// request is passed on.
const LATE: [&str; 6] = ["messages", "input", "prompt", "system", "instructions", "images"];

/// The maximum number of opening brackets in a member that is skipped unread. A member with more may be nested deeper than
/// the parser allows, so it is parsed at once.
const MAX_BRACKETS: usize = 100;

/// A JSON object and its text.
#[derive(Debug)]
pub(crate) struct Document {
    text: String,
    /// The members; `null` for those that are not parsed yet.
    light: Value,
    /// The members that are not parsed yet, with their places in the text.
    late: Vec<(&'static str, Range<usize>)>,
    /// The place of the value of `model` in the text.
    model: Option<Range<usize>>,
    /// Whether a member is there twice. The last one counts.
    has_duplicates: bool,
}

impl Document {
    /// Reads a body.
    ///
    /// # Errors
    /// The error of the parser, also for a body that is not an object.
    pub(crate) fn read(text: String) -> Result<Self, Error> {
        let mut deserializer = serde_json::Deserializer::from_str(&text);
        let found = deserializer.deserialize_map(Members { text: &text })?;
        deserializer.end()?;
        let Found { light, late, model, has_duplicates } = found;
        Ok(Self { light: Value::Object(light), late, model, has_duplicates, text })
    }

    /// Returns the members, with `null` in the place of the dialogue.
    pub(crate) const fn light(&self) -> &Value {
        &self.light
    }

    /// Returns the text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text with another name of the model.
    ///
    /// # Errors
    /// The error of the parser for a body with a duplicate member, which has to be rewritten.
    pub(crate) fn with_model(&self, model: &str) -> Result<Bytes, Error> {
        let written = serde_json::to_string(model)?;
        let parts = self.model.clone().filter(|_| !self.has_duplicates);
        let Some((before, after)) =
            parts.and_then(|place| Some((self.text.get(..place.start)?, self.text.get(place.end..)?)))
        else {
            let mut value: Value = serde_json::from_str(&self.text)?;
            value["model"] = model.into();
            return serde_json::to_vec(&value).map(Bytes::from);
        };
        let mut bytes = Vec::with_capacity(before.len() + written.len() + after.len());
        for part in [before, &written, after] {
            bytes.extend_from_slice(part.as_bytes());
        }
        Ok(bytes.into())
    }

    /// Returns all members.
    ///
    /// # Errors
    /// The error of the parser for a member that was skipped before.
    pub(crate) fn into_value(self) -> Result<Value, Error> {
        if self.has_duplicates {
            return serde_json::from_str(&self.text);
        }
        let Self { text, mut light, late, .. } = self;
        for (name, place) in late {
            light[name] = serde_json::from_str(text.get(place).unwrap_or_default())?;
        }
        Ok(light)
    }
}

struct Members<'t> {
    text: &'t str,
}

#[derive(Default)]
struct Found {
    light: Map<String, Value>,
    late: Vec<(&'static str, Range<usize>)>,
    model: Option<Range<usize>>,
    has_duplicates: bool,
}

impl Members<'_> {
    /// Returns the place of a value in the text that it was read from.
    fn place(&self, value: &str) -> Range<usize> {
        let start = (value.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        start..start + value.len()
    }
}

impl<'de> Visitor<'de> for Members<'de> {
    type Value = Found;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Found, A::Error> {
        let mut found = Found::default();
        while let Some(name) = map.next_key::<String>()? {
            let value = if let Some(late) = LATE.into_iter().find(|late| *late == name) {
                let raw = map.next_value::<&RawValue>()?.get();
                let brackets = raw.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count();
                if brackets > MAX_BRACKETS {
                    serde_json::from_str(raw).map_err(serde::de::Error::custom)?
                } else {
                    found.late.push((late, self.place(raw)));
                    Value::Null
                }
            } else if name == "model" {
                let raw = map.next_value::<&RawValue>()?.get();
                found.model = Some(self.place(raw));
                serde_json::from_str(raw).map_err(serde::de::Error::custom)?
            } else {
                map.next_value()?
            };
            found.has_duplicates |= found.light.insert(name, value).is_some();
        }
        Ok(found)
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
                let light = &document.light()[name];
                prop_assert!(light == value || (light.is_null() && LATE.contains(&name.as_str())));
            }
            let mut changed = whole.clone();
            changed["model"] = set.clone().into();
            let sent = document.with_model(&set).unwrap();
            prop_assert_eq!(serde_json::from_slice::<Value>(&sent).unwrap(), changed);
            // Only the name changes; even the white space stays.
            if pairs.len() == whole.as_object().unwrap().len() {
                let same = document.with_model(&given).unwrap();
                prop_assert_eq!(&same[..], text.as_bytes());
            }
            prop_assert_eq!(document.into_value().unwrap(), whole);
        }
    }

    #[test]
    fn text_that_is_no_object_or_too_deep_is_refused() {
        let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
        for text in ["", "[]", "5", "{", "{\"a\": 1", "{\"a\": 1}x", "{\"messages\": [}", "{\"model\": tru}"]
        {
            assert!(Document::read(text.to_owned()).is_err(), "{text}");
        }
        for name in ["messages", "tools"] {
            assert!(Document::read(format!("{{\"{name}\": {deep}}}")).is_err(), "{name}");
        }
        // Brackets in strings do not nest.
        let document = Document::read(json!({"prompt": "[".repeat(5_000)}).to_string()).unwrap();
        assert_eq!(document.into_value().unwrap()["prompt"], "[".repeat(5_000));
    }
}
