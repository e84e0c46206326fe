//! The keywords that one value decides alone.

use formwork_json::{Kind, characters};
use serde_json::Value;

use super::frame::Reason;
use super::node::{Limit, Node};
use crate::keywords::is_type;

/// A value that ends, read as far as its schemas need it.
pub(super) struct Judged<'t> {
    pub(super) raw: &'t str,
    value: Option<Option<Value>>,
    length: Option<usize>,
}

impl<'t> Judged<'t> {
    pub(super) const fn new(raw: &'t str) -> Self {
        Self { raw, value: None, length: None }
    }

    pub(super) fn value(&mut self) -> Option<&Value> {
        self.value.get_or_insert_with(|| serde_json::from_str(self.raw).ok()).as_ref()
    }

    pub(super) fn is_integer(&mut self) -> bool {
        self.raw.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
            || self.value().is_none_or(|value| is_type(value, "integer") != Some(false))
    }

    /// Returns the limit that the value breaks.
    pub(super) fn limits(&mut self, node: &Node, kind: Kind, count: usize) -> Option<Reason> {
        for (limit, bound) in &node.limits {
            let (size, is_max, unit) = match (limit, kind) {
                (Limit::Minimum | Limit::ExclusiveMinimum, Kind::Number) => (None, false, ""),
                (Limit::Maximum | Limit::ExclusiveMaximum, Kind::Number) => (None, true, ""),
                (Limit::MinLength | Limit::MaxLength, Kind::String) => {
                    let raw = self.raw.get(1..).unwrap_or_default();
                    let length = *self.length.get_or_insert_with(|| {
                        let is_plain = !raw.contains('\\');
                        if is_plain { raw.chars().count().saturating_sub(1) } else { characters(raw).count() }
                    });
                    (Some(length), *limit == Limit::MaxLength, " characters")
                }
                (Limit::MinItems, Kind::Array) => (Some(count), false, " items"),
                (Limit::MinProperties, Kind::Object) => (Some(count), false, " fields"),
                _ => continue,
            };
            let size = match size {
                Some(size) => size as f64,
                None => self.value().and_then(Value::as_f64)?,
            };
            let is_wrong = if is_max { size > *bound } else { size < *bound };
            let is_wrong = is_wrong || limit.is_exclusive() && size == *bound;
            if is_wrong {
                let word = if is_max { "at most" } else { "at least" };
                return Some(Reason::new(limit.keyword()).expected(format!("{word} {bound}{unit}")));
            }
        }
        None
    }
}
