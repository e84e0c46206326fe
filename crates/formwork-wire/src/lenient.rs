//! Reads a few members of JSON objects and ignores all others.
//!
//! Servers send a dozen unused members with every token of a stream, and members whose types differ between versions. Building a
//! `serde_json::Value` of all of it would cost more than the rest of a decoder, and a derived `Deserialize` refuses a document with
//! one member of an unexpected type. A member of an unexpected type counts as missing here.
//!
//! ```
//! use formwork_wire::lenient::{Count, Fill, Leaf, Read, read_str};
//! use serde::de::MapAccess;
//!
//! #[derive(Default)]
//! struct Chunk<'de> {
//!     text: Leaf<'de>,
//!     usage: Usage,
//! }
//!
//! #[derive(Default)]
//! struct Usage {
//!     tokens: Count,
//! }
//!
//! impl<'de> Read<'de> for Chunk<'de> {
//!     fn member<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
//!         match name {
//!             "text" => self.text = members.next_value()?,
//!             "usage" => _ = members.next_value_seed(Fill(&mut self.usage))?,
//!             _ => return Ok(false),
//!         }
//!         Ok(true)
//!     }
//! }
//!
//! impl<'de> Read<'de> for Usage {
//!     fn member<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
//!         if name == "tokens" {
//!             self.tokens = members.next_value()?;
//!         }
//!         Ok(name == "tokens")
//!     }
//! }
//!
//! let mut chunk = Chunk::default();
//! read_str(r#"{"id": 7, "text": "Lis", "usage": {"tokens": 3.0}}"#, &mut chunk)?;
//! assert_eq!((chunk.text.as_str(), chunk.usage.tokens.0), (Some("Lis"), Some(3)));
//!
//! let mut chunk = Chunk::default();
//! read_str(r#"{"text": null, "usage": []}"#, &mut chunk)?;
//! assert_eq!((chunk.text.as_str(), chunk.usage.tokens.0), (None, None));
//! # Ok::<(), serde_json::Error>(())
//! ```

use std::borrow::Cow;
use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde::ser::{Serialize, Serializer};
use serde_json::Value;

/// A type that is read from an object, from an array, or from either. The [module](self) has an example.
pub trait Read<'de>: Default {
    /// Reads the value of a member of an object, or returns `false` without reading it if the member is not used (default: no member
    /// is).
    ///
    /// # Errors
    /// A syntax error of the JSON.
    fn member<A: MapAccess<'de>>(&mut self, _name: &str, _members: &mut A) -> Result<bool, A::Error> {
        Ok(false)
    }

    /// Reads the next item of an array, or returns `false` if there is none (default: ignores it).
    ///
    /// # Errors
    /// A syntax error of the JSON.
    fn item<A: SeqAccess<'de>>(&mut self, items: &mut A) -> Result<bool, A::Error> {
        Ok(items.next_element::<IgnoredAny>()?.is_some())
    }
}

/// The type of a JSON value that [`Fill`] has read.
///
/// ```
/// use formwork_wire::lenient::{Fill, Read, Type};
/// use serde::de::DeserializeSeed;
///
/// #[derive(Default)]
/// struct Nothing;
/// impl Read<'_> for Nothing {}
///
/// let mut json = serde_json::Deserializer::from_str("[1, 2]");
/// assert_eq!(Fill(&mut Nothing).deserialize(&mut json)?, Type::Array);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// An object.
    Object,
    /// An array.
    Array,
    /// Any other value. Nothing was read.
    Other,
}

/// Reads a value in place, so that large types are not moved through each level of a document. The last one of duplicate members
/// counts, as in [`serde_json::Value`]; duplicate objects are merged. The [module](self) has an example.
#[derive(Debug)]
pub struct Fill<'a, T>(pub &'a mut T);

impl<'de, T: Read<'de>> DeserializeSeed<'de> for Fill<'_, T> {
    type Value = Type;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Type, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Read<'de>> Visitor<'de> for Fill<'_, T> {
    type Value = Type;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Type, A::Error> {
        while let Some(Name(name)) = members.next_key()? {
            if !self.0.member(&name, &mut members)? {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(Type::Object)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Type, A::Error> {
        while self.0.item(&mut items)? {}
        Ok(Type::Array)
    }

    fn visit_unit<E: Error>(self) -> Result<Type, E> {
        Ok(Type::Other)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Type, E> {
        Ok(Type::Other)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Type, E> {
        Ok(Type::Other)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Type, E> {
        Ok(Type::Other)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Type, E> {
        Ok(Type::Other)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Type, E> {
        Ok(Type::Other)
    }
}

/// Every item of an array. An item of an unexpected type is an empty value.
impl<'de, T: Read<'de>> Read<'de> for Vec<T> {
    fn item<A: SeqAccess<'de>>(&mut self, items: &mut A) -> Result<bool, A::Error> {
        let mut item = T::default();
        let is_item = items.next_element_seed(Fill(&mut item))?.is_some();
        self.extend(is_item.then_some(item));
        Ok(is_item)
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
pub enum Leaf<'de> {
    /// A missing member, or `null`.
    #[default]
    None,
    /// `true` or `false`.
    Bool(bool),
    /// A string.
    Text(Cow<'de, str>),
    /// Any other value.
    Other(Box<Value>),
}

impl Leaf<'_> {
    /// Returns the text of a string.
    pub fn as_str(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// Returns whether the value is `true`.
    pub const fn is_true(&self) -> bool {
        matches!(self, Self::Bool(true))
    }

    /// Returns an array, an object or a number.
    pub fn value(&self) -> Option<&Value> {
        if let Self::Other(value) = self { Some(value) } else { None }
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
            Self::Bool(value) => value.to_string(),
            Self::Text(text) => text.into_owned(),
            Self::Other(value) => value.to_string(),
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
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Other(value) => value.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Leaf<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LeafVisitor)
    }
}

struct LeafVisitor;

impl<'de> Visitor<'de> for LeafVisitor {
    type Value = Leaf<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<Leaf<'de>, E> {
        Ok(Leaf::None)
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Leaf<'de>, E> {
        Ok(Leaf::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Leaf<'de>, E> {
        Ok(Leaf::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Leaf<'de>, E> {
        Ok(Leaf::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Leaf<'de>, E> {
        Ok(Leaf::Other(Box::new(value.into())))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Leaf<'de>, E> {
        Ok(Leaf::Other(Box::new(value.into())))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Leaf<'de>, E> {
        Ok(Leaf::Other(Box::new(value.into())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Leaf<'de>, A::Error> {
        Value::deserialize(SeqAccessDeserializer::new(items)).map(|value| Leaf::Other(Box::new(value)))
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Leaf<'de>, A::Error> {
        Value::deserialize(MapAccessDeserializer::new(members)).map(|value| Leaf::Other(Box::new(value)))
    }
}

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

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CountVisitor)
    }
}

struct CountVisitor;

impl<'de> Visitor<'de> for CountVisitor {
    type Value = Count;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_u64<E: Error>(self, count: u64) -> Result<Count, E> {
        Ok(Count(Some(count)))
    }

    fn visit_i64<E: Error>(self, count: i64) -> Result<Count, E> {
        Ok(Count(u64::try_from(count).ok()))
    }

    fn visit_f64<E: Error>(self, count: f64) -> Result<Count, E> {
        Ok(Count(Some(count).filter(|count| *count >= 0.0).map(|count| count as u64)))
    }

    fn visit_unit<E: Error>(self) -> Result<Count, E> {
        Ok(Count(None))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Count, E> {
        Ok(Count(None))
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Count, E> {
        Ok(Count(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Count, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Count(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Count, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Count(None))
    }
}

/// The name of a member, borrowed unless it contains escapes.
struct Name<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(NameVisitor)
    }
}

struct NameVisitor;

impl<'de> Visitor<'de> for NameVisitor {
    type Value = Name<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<Name<'de>, E> {
        Ok(Name(Cow::Borrowed(name)))
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Name<'de>, E> {
        Ok(Name(Cow::Owned(name.to_owned())))
    }
}

/// Reads a document in place. The [module](self) has an example.
///
/// # Errors
/// A syntax error of the JSON, text after the document included.
pub fn read_str<'de>(text: &'de str, into: &mut impl Read<'de>) -> serde_json::Result<()> {
    document(serde_json::Deserializer::from_str(text), into)
}

/// Reads a document from bytes, as [`read_str`].
///
/// # Errors
/// The errors of [`read_str`]. Strings that are not UTF-8 are one of them.
pub fn read_slice<'de>(bytes: &'de [u8], into: &mut impl Read<'de>) -> serde_json::Result<()> {
    document(serde_json::Deserializer::from_slice(bytes), into)
}

fn document<'de>(
    mut json: serde_json::Deserializer<impl serde_json::de::Read<'de>>,
    into: &mut impl Read<'de>,
) -> serde_json::Result<()> {
    Fill(into).deserialize(&mut json)?;
    json.end()
}
