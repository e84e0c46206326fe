//! Deserializes scalars, with messages about common mistakes.

use std::fmt;

use serde::de::{Deserializer, Error, Unexpected, Visitor};

/// Deserializes a scalar. `convert` returns `None` for one of another type; `expected` is for the error about it.
pub(super) fn scalar<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    expected: &'static str,
    convert: fn(Unexpected<'_>) -> Option<Result<T, String>>,
) -> Result<T, D::Error> {
    deserializer.deserialize_any(Scalar { expected, convert })
}

struct Scalar<T> {
    expected: &'static str,
    convert: fn(Unexpected<'_>) -> Option<Result<T, String>>,
}

impl<T> Scalar<T> {
    fn read<E: Error>(self, found: Unexpected<'_>) -> Result<T, E> {
        match (self.convert)(found) {
            Some(read) => read.map_err(E::custom),
            None => Err(E::invalid_type(found, &self)),
        }
    }
}

impl<T> Visitor<'_> for Scalar<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_bool<E: Error>(self, found: bool) -> Result<T, E> {
        self.read(Unexpected::Bool(found))
    }

    fn visit_u64<E: Error>(self, found: u64) -> Result<T, E> {
        self.read(Unexpected::Unsigned(found))
    }

    fn visit_i64<E: Error>(self, found: i64) -> Result<T, E> {
        self.read(Unexpected::Signed(found))
    }

    fn visit_f64<E: Error>(self, found: f64) -> Result<T, E> {
        self.read(Unexpected::Float(found))
    }

    fn visit_str<E: Error>(self, found: &str) -> Result<T, E> {
        self.read(Unexpected::Str(found))
    }

    fn visit_unit<E: Error>(self) -> Result<T, E> {
        self.read(Unexpected::Unit)
    }
}
