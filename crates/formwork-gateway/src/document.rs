//! The body of a request, whose dialogue is read only where it is needed.

use std::fmt;
use std::ops::Range;

use axum::body::Bytes;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Error, Map, Value};

use crate::contracts::{Known, Schema};

/// The members that hold the dialogue in one of the protocols. They are most of a body, and nothing in them decides whether the
/// request is passed on.
const LATE: [&str; 6] = ["messages", "input", "prompt", "system", "instructions", "images"];

/// The places of schemas in the protocols. The schemas of a service are few, and most of the bytes of a short request.
const SCHEMAS: [&str; 4] = [
    "response_format.json_schema.schema",
    "text.format.schema",
    "output_config.format.schema",
    "output_format.schema",
];

/// The maximum number of opening brackets in a member that is skipped unread. A member with more may be nested deeper than
/// the parser allows, so it is parsed at once.
const MAX_BRACKETS: usize = 100;

/// Schemas by their places in a body, such as `response_format.json_schema.schema`.
pub(crate) type Schemas = Vec<(&'static str, Schema)>;

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
    /// The schemas, in whose places `light` has `null`.
    schemas: Schemas,
    /// Whether a member is there twice. The last one counts.
    has_duplicates: bool,
    /// Whether that is so beside a schema.
    has_inner_duplicates: bool,
}

impl Document {
    /// Reads a body. A schema whose text is known is not parsed again.
    ///
    /// # Errors
    /// The error of the parser, also for a body that is not an object.
    pub(crate) fn read(text: String, known: &Known) -> Result<Self, Error> {
        let mut deserializer = serde_json::Deserializer::from_str(&text);
        let found = deserializer.deserialize_map(Members { text: &text, known })?;
        deserializer.end()?;
        let Found { light, late, model, schemas, has_duplicates, has_inner_duplicates } = found;
        let light = Value::Object(light);
        Ok(Self { light, late, model, schemas, has_duplicates, has_inner_duplicates, text })
    }

    /// Returns the members, with `null` in the places of the dialogue and of schemas.
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
        let (mut value, schemas) = self.into_parts()?;
        for (place, schema) in schemas {
            if let Some(at) = value.pointer_mut(&format!("/{}", place.replace('.', "/"))) {
                at.clone_from(schema.value());
            }
        }
        Ok(value)
    }

    /// Returns all members with `null` in the places of schemas, and the schemas.
    ///
    /// # Errors
    /// The errors of [`into_value`](Self::into_value).
    pub(crate) fn into_parts(self) -> Result<(Value, Schemas), Error> {
        if self.has_duplicates || self.has_inner_duplicates {
            return Ok((serde_json::from_str(&self.text)?, Schemas::new()));
        }
        let Self { text, mut light, late, schemas, .. } = self;
        for (name, place) in late {
            light[name] = serde_json::from_str(text.get(place).unwrap_or_default())?;
        }
        Ok((light, schemas))
    }
}

struct Members<'t> {
    text: &'t str,
    known: &'t Known,
}

#[derive(Default)]
struct Found {
    light: Map<String, Value>,
    late: Vec<(&'static str, Range<usize>)>,
    model: Option<Range<usize>>,
    schemas: Schemas,
    has_duplicates: bool,
    has_inner_duplicates: bool,
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
            } else if let Some((place, rest)) = holder(&name) {
                let Found { schemas, has_inner_duplicates: has_duplicates, .. } = &mut found;
                map.next_value_seed(Holder { known: self.known, place, rest, schemas, has_duplicates })?
            } else {
                map.next_value()?
            };
            found.has_duplicates |= found.light.insert(name, value).is_some();
        }
        Ok(found)
    }
}

/// Returns the place of the schema in a member of the body, and the rest of it within the member.
fn holder(name: &str) -> Option<(&'static str, &'static str)> {
    SCHEMAS.into_iter().find_map(|place| Some((place, place.strip_prefix(name)?.strip_prefix('.')?)))
}

/// Reads a value within which there may be a schema.
struct Holder<'k> {
    known: &'k Known,
    place: &'static str,
    /// The place of the schema within the value.
    rest: &'static str,
    schemas: &'k mut Schemas,
    has_duplicates: &'k mut bool,
}

impl<'de> DeserializeSeed<'de> for Holder<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Holder<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let Self { known, place, rest, schemas, has_duplicates } = self;
        let (next, rest) = rest.split_once('.').unwrap_or((rest, ""));
        let mut members = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let value = if name != next {
                map.next_value()?
            } else if rest.is_empty() {
                let raw = map.next_value::<&RawValue>()?.get();
                if raw.starts_with('{') {
                    schemas.push((place, known.read(raw).map_err(serde::de::Error::custom)?));
                    Value::Null
                } else {
                    serde_json::from_str(raw).map_err(serde::de::Error::custom)?
                }
            } else {
                let (schemas, has_duplicates) = (&mut *schemas, &mut *has_duplicates);
                map.next_value_seed(Holder { known, place, rest, schemas, has_duplicates })?
            };
            *has_duplicates |= members.insert(name, value).is_some();
        }
        Ok(Value::Object(members))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(flag.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
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
            let document = Document::read(text.clone(), &Known::new(4)).unwrap();
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

    proptest! {
        /// Bodies whose members repeat, are of any type, and share schemas with earlier bodies in every spelling.
        #[test]
        fn schemas_are_read_in_their_places_whatever_was_read_before(
            bodies in prop::collection::vec(
                (prop::sample::select(SCHEMAS.to_vec()), prop::collection::vec((0_u8..6, value()), 1..4), 0_usize..3),
                1..5,
            ),
        ) {
            let known = Known::new(3);
            for (place, members, spaces) in bodies {
                let (outer, name) = place.rsplit_once('.').unwrap();
                let inner: Vec<String> = members
                    .iter()
                    .map(|(kind, value)| match kind {
                        0 => format!("\"type\":{value}"),
                        1 => format!("\"{name}\":{value}"),
                        kind => format!("\"{name}\":{}{{\"minItems\":{kind},\"x\":{value}}}", " ".repeat(spaces)),
                    })
                    .collect();
                let mut text = format!("{{{}}}", inner.join(","));
                for name in outer.rsplit('.') {
                    text = format!("{{\"{name}\":{text}}}");
                }
                let whole: Value = serde_json::from_str(&text).unwrap();
                let read = || Document::read(text.clone(), &known).unwrap();
                prop_assert_eq!(read().into_value().unwrap(), whole.clone());
                let pointer = format!("/{}", place.replace('.', "/"));
                let (mut value, schemas) = read().into_parts().unwrap();
                for (at, schema) in &schemas {
                    prop_assert_eq!(*at, place);
                    prop_assert_eq!(schema.value(), &whole.pointer(&pointer).cloned().unwrap());
                    *value.pointer_mut(&pointer).unwrap() = schema.value().clone();
                }
                prop_assert_eq!(value, whole);
                prop_assert!(schemas.len() <= 1);
            }
        }
    }

    #[test]
    fn text_that_is_no_object_or_too_deep_is_refused() {
        let known = Known::new(4);
        let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
        for text in ["", "[]", "5", "{", "{\"a\": 1", "{\"a\": 1}x", "{\"messages\": [}", "{\"model\": tru}"]
        {
            assert!(Document::read(text.to_owned(), &known).is_err(), "{text}");
        }
        let deep_schema = format!(r#"{{"output_format": {{"schema": {{"not": {deep}}}}}}}"#);
        assert!(Document::read(deep_schema, &known).is_err());
        for name in ["messages", "tools"] {
            assert!(Document::read(format!("{{\"{name}\": {deep}}}"), &known).is_err(), "{name}");
        }
        // Brackets in strings do not nest.
        let document = Document::read(json!({"prompt": "[".repeat(5_000)}).to_string(), &known).unwrap();
        assert_eq!(document.into_value().unwrap()["prompt"], "[".repeat(5_000));
    }
}
