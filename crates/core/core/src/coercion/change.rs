//! One change of a value.

use formwork_json::JsonPath;
use serde_json::Value;

use crate::violation::{MAX_FOUND, cut};
use crate::{Warning, WarningKind};

/// One change of a value that did not fit its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Coerced {
    /// The path of the value in the changed document; of a removed value, its path before.
    pub path: JsonPath,
    /// The value before the change as JSON, cut to a maximum length; empty if there was none.
    pub original: String,
    /// A sentence about the change, with the original text.
    pub message: String,
}

impl Coerced {
    pub(super) fn changed(path: JsonPath, from: &Value, to: &Value) -> Self {
        let (original, now) = (short(from), short(to));
        Self { path, message: format!("{original} was read as {now}"), original }
    }

    /// Replaces a number by its text in the document: the text of `12.5` may be `12.50`.
    pub(super) fn read_from(&mut self, text: &str) {
        let is_same = |value: Value| value.is_number() && short(&value) == self.original;
        if serde_json::from_str(text).is_ok_and(is_same) {
            let text = cut(text, MAX_FOUND);
            self.message = self.message.replacen(&self.original, &text, 1);
            self.original = text.into_owned();
        }
    }

    pub(super) fn removed(path: JsonPath, from: &Value, reason: &str) -> Self {
        let original = short(from);
        Self { path, message: format!("{original} {reason} and was left out"), original }
    }

    pub(super) fn added(path: JsonPath, value: &Value) -> Self {
        let message = format!("the member was missing and is {} by its schema", short(value));
        Self { path, message, original: String::new() }
    }

    pub(super) fn renamed(path: JsonPath, name: &str) -> Self {
        let original = short(&Value::from(name));
        Self { path, message: format!("the member was named {original}"), original }
    }
}

/// A change of an accepted value.
impl From<&Coerced> for Warning {
    fn from(one: &Coerced) -> Self {
        Self::new(WarningKind::Coerced, &one.message).at(one.path.clone())
    }
}

fn short(value: &Value) -> String {
    cut(&value.to_string(), MAX_FOUND).into_owned()
}
