//! The requirements of one schema on one value.

use std::collections::HashMap;

use formwork_json::{Kind, is_same};
use serde_json::Value;

use super::check::Check;

/// The index of a node.
pub(super) type Id = u32;

/// The node of the schema itself.
pub(super) const ROOT: Id = 0;

/// The requirements of one schema on one value, without the schemas that it includes.
#[derive(Default)]
pub(super) struct Node {
    /// The allowed kinds, as a set of bits.
    pub(super) kinds: u8,
    /// Whether numbers have to be integers.
    pub(super) integer: bool,
    /// The values of `enum` and `const`.
    pub(super) values: Option<Values>,
    pub(super) limits: Vec<(Limit, f64)>,
    pub(super) members: HashMap<String, Member>,
    /// The names in `required`, by their number in [`Member::required`].
    pub(super) required: Vec<String>,
    pub(super) patterns: Vec<(Check, Id)>,
    pub(super) additional: Option<Id>,
    pub(super) names: Option<Check>,
    pub(super) prefix: Vec<Id>,
    pub(super) items: Option<Id>,
    /// The schemas of `$ref` and `allOf`.
    pub(super) all: Vec<Id>,
    /// The schemas of `anyOf` and `oneOf`, and whether exactly one has to fit.
    pub(super) unions: Vec<(bool, Vec<Id>)>,
    /// The keywords that the validator judges when the value ends, each with the kinds that it concerns.
    pub(super) checks: Vec<(u8, Check)>,
    /// Whether a keyword cannot be judged before the whole document is.
    pub(super) unsure: bool,
    /// Whether it names a member that is not decided.
    pub(super) is_open: bool,
}

#[derive(Default, Clone, Copy)]
pub(super) struct Member {
    pub(super) schema: Option<Id>,
    pub(super) required: Option<u32>,
}

/// The keywords with a number that the reader decides itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    Minimum,
    Maximum,
    ExclusiveMinimum,
    ExclusiveMaximum,
    MinLength,
    MaxLength,
    MinItems,
    MaxItems,
    MinProperties,
    MaxProperties,
}

pub(super) const LIMITS: [(&str, Limit); 10] = [
    ("minimum", Limit::Minimum),
    ("maximum", Limit::Maximum),
    ("exclusiveMinimum", Limit::ExclusiveMinimum),
    ("exclusiveMaximum", Limit::ExclusiveMaximum),
    ("minLength", Limit::MinLength),
    ("maxLength", Limit::MaxLength),
    ("minItems", Limit::MinItems),
    ("maxItems", Limit::MaxItems),
    ("minProperties", Limit::MinProperties),
    ("maxProperties", Limit::MaxProperties),
];

impl Limit {
    pub(super) const fn is_exclusive(self) -> bool {
        matches!(self, Self::ExclusiveMinimum | Self::ExclusiveMaximum)
    }

    pub(super) fn keyword(self) -> &'static str {
        LIMITS.iter().find(|(_, limit)| *limit == self).map_or("", |(keyword, _)| keyword)
    }
}

/// The values of `enum` or `const`.
pub(super) struct Values {
    /// The texts, sorted.
    texts: Vec<String>,
    others: Vec<Value>,
}

impl Values {
    pub(super) fn new(values: &[Value]) -> Self {
        let mut texts: Vec<String> = values.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        texts.sort_unstable();
        Self { texts, others: values.iter().filter(|value| !value.is_string()).cloned().collect() }
    }

    pub(super) fn contains(&self, value: &Value) -> bool {
        match value.as_str() {
            Some(text) => self.texts.binary_search_by(|one| one.as_str().cmp(text)).is_ok(),
            None => self.others.iter().any(|one| is_same(one, value)),
        }
    }

    /// Returns whether a text is one of the values in other case or with other spaces.
    pub(super) fn has_respelled(&self, text: &str) -> bool {
        let plain = |text: &str| -> String {
            text.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect()
        };
        let text = plain(text);
        let mut others = self.others.iter().filter(|one| one.is_number() || one.is_boolean());
        self.texts.iter().any(|one| plain(one) == text) || others.any(|one| *one.to_string() == text)
    }

    /// Returns whether a text can become one of the values.
    pub(super) fn begins(&self, text: &str) -> bool {
        let from = self.texts.partition_point(|one| one.as_str() < text);
        self.texts.get(from).is_some_and(|one| one.starts_with(text))
    }
}

/// Returns the bit of a kind.
pub(super) const fn bit(kind: Kind) -> u8 {
    match kind {
        Kind::Object => 1,
        Kind::Array => 2,
        Kind::String => 4,
        Kind::Number => 8,
        Kind::True => 16,
        Kind::False => 32,
        Kind::Null => 64,
    }
}

/// Returns the type of a kind in JSON Schema.
pub(super) const fn name_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Object => "object",
        Kind::Array => "array",
        Kind::String => "string",
        Kind::Number => "number",
        Kind::True | Kind::False => "boolean",
        Kind::Null => "null",
    }
}

pub(super) const ALL: u8 = 127;

pub(super) fn bits_of_type(name: &str) -> u8 {
    match name {
        "object" => bit(Kind::Object),
        "array" => bit(Kind::Array),
        "string" => bit(Kind::String),
        "number" | "integer" => bit(Kind::Number),
        "boolean" => bit(Kind::True) | bit(Kind::False),
        "null" => bit(Kind::Null),
        _ => ALL,
    }
}

pub(super) fn bits_of_value(value: &Value) -> u8 {
    match value {
        Value::Object(_) => bit(Kind::Object),
        Value::Array(_) => bit(Kind::Array),
        Value::String(_) => bit(Kind::String),
        Value::Number(_) => bit(Kind::Number),
        Value::Bool(true) => bit(Kind::True),
        Value::Bool(false) => bit(Kind::False),
        Value::Null => bit(Kind::Null),
    }
}

impl Node {
    /// Returns whether the schema allows values of this kind.
    pub(super) const fn allows(&self, kind: Kind) -> bool {
        self.kinds & bit(kind) != 0
    }

    /// Returns the names of the allowed types.
    pub(super) fn types(&self) -> String {
        let kinds = [Kind::Object, Kind::Array, Kind::String, Kind::Number, Kind::True, Kind::Null];
        let names = kinds.into_iter().filter(|kind| self.allows(*kind)).map(|kind| match kind {
            Kind::Number if self.integer => "integer",
            kind => name_of(kind),
        });
        names.collect::<Vec<_>>().join(" or ")
    }

    /// Returns whether the schema allows no value at all.
    pub(super) const fn is_never(&self) -> bool {
        self.kinds == 0
    }

    pub(super) fn limit(&self, limit: Limit) -> Option<f64> {
        self.limits.iter().find(|(one, _)| *one == limit).map(|(_, number)| *number)
    }

    /// Returns whether a string may be wrong before it ends.
    pub(super) fn tracks_text(&self) -> bool {
        self.values.is_some() || self.limit(Limit::MaxLength).is_some()
    }
}
