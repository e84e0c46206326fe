//! Sets of JSON types, and enumerated values.

use formwork_core::keywords as table;
use formwork_json::{compare, is_same};
use serde_json::Value;

use super::flat::At;
use super::scalars::number_of;

/// A set of JSON types. A set with fractional numbers contains integers as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub(super) const NULL: Self = Self(1);
    pub(super) const BOOLEAN: Self = Self(1 << 1);
    pub(super) const FRACTION: Self = Self(1 << 2);
    pub(super) const INTEGER: Self = Self(1 << 3);
    pub(super) const STRING: Self = Self(1 << 4);
    pub(super) const ARRAY: Self = Self(1 << 5);
    pub(super) const OBJECT: Self = Self(1 << 6);
    pub(super) const NUMBER: Self = Self::FRACTION.or(Self::INTEGER);
    pub(super) const ALL: Self = Self(0b111_1111);
    const NONE: Self = Self(0);

    /// Returns the types that the `type` of a schema allows.
    pub(super) fn of(node: &Value) -> Self {
        match node.get("type") {
            Some(Value::String(name)) => Self::named([name.as_str()]),
            Some(Value::Array(names)) => Self::named(names.iter().filter_map(Value::as_str)),
            _ => Self::ALL,
        }
    }

    fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut kinds = Self::NONE;
        for name in names {
            kinds = kinds.or(match name {
                "null" => Self::NULL,
                "boolean" => Self::BOOLEAN,
                "number" => Self::NUMBER,
                "integer" => Self::INTEGER,
                "string" => Self::STRING,
                "array" => Self::ARRAY,
                "object" => Self::OBJECT,
                // An unknown type excludes nothing.
                _ => return Self::ALL,
            });
        }
        kinds
    }

    /// Returns whether the sets have a type in common.
    pub(super) const fn has(self, kinds: Self) -> bool {
        self.0 & kinds.0 != 0
    }

    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns the types that `other` lacks. Numbers are one type here.
    pub(super) const fn minus(self, other: Self) -> Self {
        let has_numbers = self.has(Self::FRACTION) && !other.has(Self::NUMBER);
        self.without(other).without(if has_numbers { Self::NONE } else { Self::NUMBER })
    }

    pub(super) fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// Returns the types that the keywords of schemas without `type` constrain.
    pub(super) fn meant_by(members: &[At<'_>]) -> Self {
        let keywords = members.iter().flat_map(At::keywords);
        let kinds = Self::named(keywords.filter_map(|(keyword, _)| table::keyword(keyword)?.about));
        if kinds.is_none() { Self::ALL } else { kinds }
    }

    fn admit(self, value: &Value) -> bool {
        self.has(match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(number) if number.as_f64().is_none_or(|number| number.fract() == 0.0) => {
                Self::INTEGER
            }
            Value::Number(_) => Self::FRACTION,
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        })
    }
}

/// Returns the values that all enumerations contain; `None` without an enumeration.
pub(super) fn literals(members: &[At<'_>], kinds: Kinds) -> Option<Vec<Value>> {
    let mut common: Option<Vec<&Value>> = None;
    for at in members {
        for (keyword, value) in at.keywords() {
            let listed = match (keyword, value) {
                ("const", value) => std::slice::from_ref(value),
                ("enum", Value::Array(values)) => values,
                _ => continue,
            };
            common = Some(match common {
                None => listed.iter().collect(),
                Some(values) => {
                    let both = |value: &&Value| listed.iter().any(|listed| is_same(listed, value));
                    values.into_iter().filter(both).collect()
                }
            });
        }
    }
    let mut values = common?;
    values.retain(|value| kinds.admit(value) && members.iter().all(|at| admits(at.node, value)));
    let mut seen: Vec<Value> = Vec::with_capacity(values.len());
    // Comparing all pairs of a long list is too slow for its few duplicates.
    let is_long = values.len() > 1024;
    for value in values {
        if is_long || !seen.iter().any(|known| is_same(known, value)) {
            seen.push(value.clone());
        }
    }
    Some(seen)
}

/// Returns whether a value satisfies the constraints of a schema on scalars.
fn admits(node: &Value, value: &Value) -> bool {
    let negated = node.get("not").is_some_and(|not| {
        let only =
            |keyword: &str| not.as_object().is_some_and(|not| not.len() == 1 && not.contains_key(keyword));
        let lists = |values: &Value| {
            values.as_array().is_some_and(|values| values.iter().any(|one| is_same(one, value)))
        };
        (only("const") && is_same(&not["const"], value)) || (only("enum") && lists(&not["enum"]))
    });
    let fits = match value {
        Value::Number(number) => {
            let order = |keyword: &str| Some(compare(number, number_of(node, keyword)?));
            order("minimum").is_none_or(|order| order.is_ge())
                && order("maximum").is_none_or(|order| order.is_le())
                && order("exclusiveMinimum").is_none_or(|order| order.is_gt())
                && order("exclusiveMaximum").is_none_or(|order| order.is_lt())
        }
        Value::String(text) => {
            let bound = |keyword: &str| node.get(keyword).and_then(Value::as_f64);
            let length = text.chars().count() as f64;
            bound("minLength").is_none_or(|min| length >= min)
                && bound("maxLength").is_none_or(|max| length <= max)
        }
        _ => true,
    };
    fits && !negated
}

/// Returns the types that remain after a `not` of a type, of `true` and of `{}`.
pub(super) fn without_negated(mut kinds: Kinds, members: &[At<'_>]) -> Kinds {
    for not in members.iter().filter_map(|at| at.node.get("not")) {
        match not {
            Value::Bool(true) => kinds = Kinds::NONE,
            Value::Object(keywords) if keywords.is_empty() => kinds = Kinds::NONE,
            Value::Object(keywords) if keywords.len() == 1 && keywords.contains_key("type") => {
                let gone = Kinds::of(not);
                // Forms cannot express numbers that are not integral.
                let is_said = gone.has(Kinds::FRACTION);
                kinds = kinds.without(if is_said { gone } else { gone.without(Kinds::INTEGER) });
            }
            _ => {}
        }
    }
    kinds
}

/// Returns whether [`without_negated`] expresses a `not` completely.
pub(super) fn is_said_negation(not: &Value) -> bool {
    match not {
        Value::Bool(_) => true,
        Value::Object(keywords) if keywords.is_empty() => true,
        Value::Object(keywords) => {
            keywords.len() == 1
                && keywords.contains_key("type")
                && Kinds::of(not) != Kinds::named(["integer"])
        }
        _ => false,
    }
}

/// Returns whether forms express a `propertyNames` completely: a pattern or an enumeration. Names are always strings.
pub(super) fn is_said_of_names(names: &Value) -> bool {
    match names {
        Value::Bool(allowed) => *allowed,
        Value::Object(keywords) => keywords.iter().all(|(keyword, value)| {
            matches!(keyword.as_str(), "pattern" | "enum" | "$ref" | "description" | "title")
                || (keyword == "type" && value == "string")
        }),
        _ => false,
    }
}
