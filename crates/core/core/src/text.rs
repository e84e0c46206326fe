use std::io;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

/// Returns a value as JSON with a space after each comma and colon.
///
/// Small models copy the style of the JSON in their prompt, and most JSON in their training data has these spaces: with
/// compact JSON in the prompt, one model got a value right 0 of 39 times, with spaced JSON 40 of 40.
///
/// ```
/// let value = serde_json::json!({"a": [1, 2], "b": {}});
/// assert_eq!(formwork_core::spaced(&value), r#"{"a": [1, 2], "b": {}}"#);
/// ```
pub fn spaced(value: &Value) -> String {
    let mut out = Vec::new();
    // Writing to memory cannot fail, and a `Value` has only string keys.
    match value.serialize(&mut Serializer::with_formatter(&mut out, Spaced)) {
        Ok(()) => String::from_utf8(out).unwrap_or_default(),
        Err(_) => value.to_string(),
    }
}

struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
}
