//! Deserializes a few properties of an object and ignores all others.
//!
//! Building a `serde_json::Value` would cost more than the rest of the decoder, because servers send a dozen unused properties
//! with every token of a stream.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A visitor of an object, or of an array.
pub(super) trait Read: Default {
    /// Whether the type is read from an array instead of an object.
    const IS_ARRAY: bool = false;

    /// Reads the value of a property, or returns `false` without reading it if the property is not used. The last one of
    /// duplicate properties counts, as in [`serde_json::Value`].
    ///
    /// # Errors
    /// A syntax error of the JSON.
    fn member<'de, A: MapAccess<'de>>(&mut self, _name: &str, _members: &mut A) -> Result<bool, A::Error> {
        Ok(false)
    }

    /// Reads the next item, or returns `false` if there is none.
    ///
    /// # Errors
    /// A syntax error of the JSON.
    fn item<'de, A: SeqAccess<'de>>(&mut self, items: &mut A) -> Result<bool, A::Error> {
        Ok(items.next_element::<IgnoredAny>()?.is_some())
    }
}

/// The value that was read, or `None` for a value of another JSON type. It is boxed because every level above moves it.
pub(super) struct Maybe<T>(pub(super) Option<Box<T>>);

impl<T> Default for Maybe<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Read> Deserialize<'de> for Maybe<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MaybeVisitor(PhantomData))
    }
}

struct MaybeVisitor<T>(PhantomData<T>);

impl<'de, T: Read> Visitor<'de> for MaybeVisitor<T> {
    type Value = Maybe<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut read = Box::<T>::default();
        while let Some(Name(name)) = members.next_key()? {
            if !read.member(&name, &mut members)? {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(Maybe((!T::IS_ARRAY).then_some(read)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut read = Box::<T>::default();
        while read.item(&mut items)? {}
        Ok(Maybe(T::IS_ARRAY.then_some(read)))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Maybe(None))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Maybe(None))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Maybe(None))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Maybe(None))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Maybe(None))
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
        Ok(Maybe(None))
    }
}

/// The name of a property, borrowed unless it contains escapes.
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

    fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Name(Cow::Borrowed(name)))
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Name(Cow::Owned(name.to_owned())))
    }
}
