//! Leaf types for derived `Deserialize` implementations that accept any JSON.
//!
//! Servers send members whose types differ between versions, and a dozen unused members with every token of a stream. A derived
//! `Deserialize` refuses a document with one member of an unexpected type. A structure whose members have the types of this module
//! accepts every document: a member of an unexpected type counts as missing, and unknown members are ignored. [`from_str`] and
//! [`from_slice`] also accept repeated members, of which the last counts. Texts are borrowed from the document.
//!
//! ```
//! use formwork_wire::lenient::{self, Count, Leaf, List, Object};
//! use serde::Deserialize;
//!
//! #[derive(Default, Deserialize)]
//! #[serde(default)]
//! struct Chunk<'a> {
//!     #[serde(borrow)]
//!     text: Leaf<'a>,
//!     usage: Object<Usage>,
//!     parts: List<Leaf<'a>>,
//! }
//!
//! #[derive(Default, Deserialize)]
//! #[serde(default)]
//! struct Usage {
//!     tokens: Count,
//! }
//!
//! let chunk: Chunk = lenient::from_str(r#"{"id": 7, "text": "Lis", "usage": {"tokens": 3.0}, "parts": ["a", 1]}"#)?;
//! assert_eq!(chunk.text.as_str(), Some("Lis"));
//! assert_eq!(chunk.usage.0.and_then(|usage| usage.tokens.0), Some(3));
//! assert_eq!(chunk.parts.0.map(|parts| parts.len()), Some(2));
//!
//! let chunk: Chunk = lenient::from_str(r#"{"text": "a", "text": null, "usage": [], "parts": {}}"#)?;
//! assert!(chunk.text.is_none() && chunk.usage.0.is_none() && chunk.parts.0.is_none());
//! # Ok::<(), serde_json::Error>(())
//! ```

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// Reads a document. A document that is not an object is read as the default value.
///
/// # Errors
/// A syntax error of the JSON, text after the document included.
pub fn from_str<'a, T: Deserialize<'a> + Default>(text: &'a str) -> serde_json::Result<T> {
    last_counts(serde_json::from_str(text), || serde_json::from_str(text))
}

/// Reads a document from bytes, as [`from_str`].
///
/// # Errors
/// The errors of [`from_str`]. Strings that are not UTF-8 are one of them.
pub fn from_slice<'a, T: Deserialize<'a> + Default>(bytes: &'a [u8]) -> serde_json::Result<T> {
    last_counts(serde_json::from_slice(bytes), || serde_json::from_slice(bytes))
}

/// Returns the document that was read. A derived `Deserialize` refuses repeated members, and a [`Value`] has the last one of them, so
/// a refused document is read again as a [`Value`].
fn last_counts<'a, T: Deserialize<'a> + Default>(
    read: serde_json::Result<Object<T>>,
    again: impl FnOnce() -> serde_json::Result<Value>,
) -> serde_json::Result<T> {
    match read {
        Ok(Object(Some(document))) => Ok(document),
        Ok(Object(None)) => Ok(T::default()),
        Err(_) => Ok(Object::deserialize(again()?)?.0.unwrap_or_default()),
    }
}

/// A value of any JSON type. Texts are borrowed from the document unless they contain escapes.
///
/// ```
/// use formwork_wire::lenient::Leaf;
///
/// let leaf: Leaf = serde_json::from_str(r#""Lisbon""#)?;
/// assert_eq!(leaf.as_str(), Some("Lisbon"));
/// assert_eq!(leaf.into_text(), Some("Lisbon".to_owned()));
/// let leaf: Leaf = serde_json::from_str(r#"{"city": "Lisbon"}"#)?;
/// assert!(leaf.as_str().is_none() && leaf.value().is_some());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Leaf<'a> {
    /// A missing member, or `null`.
    #[default]
    None,
    /// A string.
    Text(Cow<'a, str>),
    /// The JSON of any other value. Numbers in objects and arrays keep their digits.
    Other(Box<str>),
}

impl Leaf<'_> {
    /// Returns the text of a string.
    pub fn as_str(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// Returns an array, an object, a number or a truth value.
    pub fn value(&self) -> Option<Value> {
        if let Self::Other(json) = self { serde_json::from_str(json).ok() } else { None }
    }

    /// Returns whether the member is missing or `null`.
    pub const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// Returns the text of a string that is not empty.
    pub fn into_text(self) -> Option<String> {
        if let Self::Text(text) = self {
            Some(text.into_owned()).filter(|text| !text.is_empty())
        } else {
            None
        }
    }

    /// Returns the text of a string, the JSON of any other value, and an empty text for a missing one. Some servers parse JSON that
    /// the protocol wraps in a string.
    pub fn into_json(self) -> String {
        match self {
            Self::None => String::new(),
            Self::Text(text) => text.into_owned(),
            Self::Other(json) => json.into(),
        }
    }

    /// Returns the value, and leaves a missing one.
    #[must_use]
    pub fn take(&mut self) -> Self {
        std::mem::take(self)
    }
}

impl Serialize for Leaf<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => serializer.serialize_unit(),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Other(_) => self.value().serialize(serializer),
        }
    }
}

impl<'a> From<Value> for Leaf<'a> {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::None,
            Value::String(text) => Self::Text(Cow::Owned(text)),
            other => Self::Other(other.to_string().into()),
        }
    }
}

/// Whether a value is `true`. Any other value counts as `false`.
///
/// ```
/// use formwork_wire::lenient::Flag;
///
/// let flags: Vec<Flag> = serde_json::from_str(r#"[true, false, "true", 1, null]"#)?;
/// assert_eq!(flags, [Flag(true), Flag(false), Flag(false), Flag(false), Flag(false)]);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flag(pub bool);

/// A number of things, which some servers write as a floating-point number. `None` for any other value.
///
/// ```
/// use formwork_wire::lenient::Count;
///
/// let counts: Vec<Count> = serde_json::from_str(r#"[7, 7.0, -7, "7", null]"#)?;
/// assert_eq!(counts, [Count(Some(7)), Count(Some(7)), Count(None), Count(None), Count(None)]);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count(pub Option<u64>);

/// An amount of something. `None` for any value that is no number.
///
/// ```
/// use formwork_wire::lenient::Amount;
///
/// let amounts: Vec<Amount> = serde_json::from_str(r#"[0.25, 3, "3", {"total": 1}]"#)?;
/// assert_eq!(amounts, [Amount(Some(0.25)), Amount(Some(3.0)), Amount(None), Amount(None)]);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Amount(pub Option<f64>);

/// An object, or `None` for any other value.
///
/// `T` is a structure of lenient members.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Object<T>(pub Option<T>);

/// The items of an array, or `None` for any other value.
///
/// `T` is one of the types of this module.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct List<T>(pub Option<Vec<T>>);

impl<T> List<T> {
    /// Returns the items.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flatten()
    }
}

/// A type that is made from a JSON value of any type.
trait OfAny<'de>: Default {
    /// Returns the value for a truth value or a number.
    fn of_scalar(_: Value) -> Self {
        Self::default()
    }

    fn of_text(_: Cow<'de, str>) -> Self {
        Self::default()
    }

    fn of_object<A: MapAccess<'de>>(mut members: A) -> Result<Self, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }

    fn of_array<A: SeqAccess<'de>>(mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }
}

impl<'de: 'a, 'a> OfAny<'de> for Leaf<'a> {
    fn of_scalar(value: Value) -> Self {
        Self::from(value)
    }

    fn of_text(text: Cow<'de, str>) -> Self {
        Self::Text(text)
    }

    fn of_object<A: MapAccess<'de>>(mut members: A) -> Result<Self, A::Error> {
        let mut json = String::from("{");
        while let Some((name, value)) = members.next_entry::<String, Box<RawValue>>()? {
            let separator = if json.len() == 1 { "" } else { "," };
            json.extend([separator, &Value::from(name).to_string(), ":", value.get()]);
        }
        json.push('}');
        Ok(Self::Other(json.into()))
    }

    fn of_array<A: SeqAccess<'de>>(mut items: A) -> Result<Self, A::Error> {
        let mut json = String::from("[");
        while let Some(item) = items.next_element::<Box<RawValue>>()? {
            json.extend([if json.len() == 1 { "" } else { "," }, item.get()]);
        }
        json.push(']');
        Ok(Self::Other(json.into()))
    }
}

impl<'de> OfAny<'de> for Flag {
    fn of_scalar(value: Value) -> Self {
        Self(value == true)
    }
}

impl<'de> OfAny<'de> for Count {
    fn of_scalar(value: Value) -> Self {
        let float = || value.as_f64().filter(|count| *count >= 0.0).map(|count| count as u64);
        Self(value.as_u64().or_else(float))
    }
}

impl OfAny<'_> for Amount {
    fn of_scalar(value: Value) -> Self {
        Self(value.as_f64())
    }
}

impl<'de, T: Deserialize<'de> + Default> OfAny<'de> for Object<T> {
    fn of_object<A: MapAccess<'de>>(members: A) -> Result<Self, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members)).map(|object| Self(Some(object)))
    }
}

impl<'de, T: Deserialize<'de> + Default> OfAny<'de> for List<T> {
    fn of_array<A: SeqAccess<'de>>(items: A) -> Result<Self, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(items)).map(|items| Self(Some(items)))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Leaf<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any(PhantomData))
    }
}

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any(PhantomData))
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any(PhantomData))
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any(PhantomData))
    }
}

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any(PhantomData))
    }
}

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any(PhantomData))
    }
}

/// Reads a value of any type.
struct Any<T>(PhantomData<T>);

impl<'de, T: OfAny<'de>> Visitor<'de> for Any<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<T, E> {
        Ok(T::of_scalar(Value::from(value)))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<T, E> {
        Ok(T::of_scalar(Value::from(value)))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<T, E> {
        Ok(T::of_scalar(Value::from(value)))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<T, E> {
        Ok(T::of_scalar(Value::from(value)))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<T, E> {
        Ok(T::of_text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        Ok(T::of_text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<T, A::Error> {
        T::of_array(items)
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<T, A::Error> {
        T::of_object(members)
    }
}
