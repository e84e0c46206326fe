//! The fast path for valid JSON: serde_json reads the text, and only duplicate keys need extra work.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::locate::duplicate_keys;
use crate::rounded::{all_rounded, has_many_digits, may_round};
use crate::{Edit, EditKind, ReadError, Rounded};

/// A text that is JSON.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) value: Value,
    /// The duplicate keys.
    pub(crate) edits: Vec<Edit>,
    pub(crate) rounded: Vec<Rounded>,
}

/// Reads `text` as one JSON document, with optional white space around it.
pub(crate) fn read_strict(text: &str) -> Result<Document, ReadError> {
    let (duplicates, doubles) = (Cell::new(0), Cell::new(Doubles::None));
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Seed { duplicates: &duplicates, doubles: &doubles }
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value));
    let value = value.map_err(|error| describe(text, &error))?;
    let edits = if duplicates.get() == 0 {
        Vec::new()
    } else {
        duplicate_keys(text)
            .into_iter()
            .map(|(span, name)| Edit::new(EditKind::DuplicateKey, span, name))
            .collect()
    };
    let may_round = match doubles.get() {
        Doubles::None => false,
        Doubles::Usual => has_many_digits(text),
        Doubles::Small => may_round(text),
    };
    let rounded = if may_round { all_rounded(text) } else { Vec::new() };
    Ok(Document { value, edits, rounded })
}

/// Converts an error of serde_json: its byte offset, and its message without "at line … column …".
fn describe(text: &str, error: &serde_json::Error) -> ReadError {
    let full = error.to_string();
    let message = match full.rsplit_once(" at line ").map_or(full.as_str(), |(message, _)| message) {
        // serde_json's word for the literals of JSON, where a text begins with a letter of one of them.
        "expected ident" => "expected value",
        message => message,
    };
    let at = offset(text, error.line(), error.column());
    if message.starts_with("recursion limit") {
        return ReadError::TooDeep { at, limit: crate::MAX_DEPTH };
    }
    ReadError::Syntax { at, message: message.to_owned() }
}

/// Returns the byte offset of serde_json's 1-based line and column (counted in bytes; column 0 is the newline before).
fn offset(text: &str, line: usize, column: usize) -> usize {
    let start = match line.checked_sub(2) {
        None => 0,
        Some(nth) => text.match_indices('\n').nth(nth).map_or(0, |(at, _)| at + 1),
    };
    (start + column.saturating_sub(1)).min(text.len())
}

/// Builds a [`Value`] like serde_json's own visitor, counts duplicate names, and notices numbers that are read as doubles: no other
/// number changes.
#[derive(Clone, Copy)]
struct Seed<'a> {
    duplicates: &'a Cell<usize>,
    doubles: &'a Cell<Doubles>,
}

/// The doubles of a document, by what can have changed them.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Doubles {
    None,
    /// Only too many digits change them.
    Usual,
    /// One is so small that its exponent may be the reason.
    Small,
}

/// The maximum of doubles whose text may have few digits and an exponent of three: 15 digits and `e-100`.
const SMALL: f64 = 1e-85;

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        let of_value = if value.abs() < SMALL { Doubles::Small } else { Doubles::Usual };
        if self.doubles.get() < of_value {
            self.doubles.set(of_value);
        }
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut out = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            out.push(item);
        }
        Ok(Value::Array(out))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut out = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if out.insert(name, members.next_value_seed(self)?).is_some() {
                self.duplicates.set(self.duplicates.get() + 1);
            }
        }
        Ok(Value::Object(out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Span;
    use serde_json::json;

    #[test]
    fn the_last_of_two_equal_names_is_kept_and_the_first_is_shown() {
        let Document { value, edits, .. } =
            read_strict(r#"{"a": 1, "b": {"c": 1, "c": 2}, "a": 3}"#).unwrap();
        assert_eq!(value, json!({"a": 3, "b": {"c": 2}}));
        assert_eq!(
            edits.iter().map(|e| (e.span, e.with.as_str())).collect::<Vec<_>>(),
            [(Span::new(23, 26), "c"), (Span::new(32, 35), "a")]
        );
    }

    #[test]
    fn errors_name_the_byte() {
        for (text, at) in [("", 0), ("{\"a\": x}", 6), ("[1,\n 2,\n]", 8), ("{} {}", 3), ("nul", 2)] {
            match read_strict(text) {
                Err(ReadError::Syntax { at: found, .. }) => assert_eq!(found, at, "{text}"),
                other => panic!("{text}: {other:?}"),
            }
        }
        assert!(matches!(read_strict(&"[".repeat(200)), Err(ReadError::TooDeep { at: 127, limit: 127 })));
    }
}
