//! The comparison of values.

use formwork_json::{Segment, compare, is_same};
use formwork_keywords::{item, parts, target};
use serde_json::Value;

use crate::date::dates;
use crate::decimal::readings;
use crate::text::plain;

/// The member of a schema that states how values are compared.
pub const KEYWORD: &str = "x-formwork-compare";

/// The comparison of two values.
///
/// A schema states it for a value by `x-formwork-compare`: the name, or an object with the name as `as`.
///
/// ```
/// use formwork_evidence::Compare;
/// use serde_json::json;
///
/// let price = Compare::parse(&json!({"as": "number", "tolerance": 0.01}))?;
/// assert!(price.is_equal(&json!(10), &json!(10.009)) && !price.is_equal(&json!(10), &json!(10.02)));
/// assert!(Compare::parse(&json!("date"))?.is_equal(&json!("2024-03-05"), &json!("5 March 2024")));
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Compare {
    /// `exact`: equal JSON values. Numbers are equal by value.
    Exact,
    /// `number`: numbers, also in texts, that differ by at most `tolerance` (default: 0.000001).
    Number {
        /// The maximum difference.
        tolerance: f64,
    },
    /// `date`: texts that state the same date in any notation. Other texts are compared as by [`Text`](Self::Text).
    Date,
    /// `text`: texts without their case, white space and punctuation.
    Text,
    /// `set`: lists without their order and repeated items.
    Set,
    /// `list`: lists in their order.
    List,
}

impl Compare {
    /// The comparison of numbers by default.
    pub const NUMBER: Self = Self::Number { tolerance: 1e-6 };

    /// Parses a value of `x-formwork-compare`.
    ///
    /// # Errors
    /// A message that lists the valid values.
    pub fn parse(value: &Value) -> Result<Self, String> {
        let error = || {
            let expected = "expected exact, number, date, text, set or list, or {\"as\": \"number\", \"tolerance\": 0.01}";
            format!("`{KEYWORD}` is {value}: {expected}")
        };
        let name = value.as_str().or_else(|| value.get("as")?.as_str()).ok_or_else(error)?;
        let tolerance = match value.get("tolerance") {
            None => None,
            Some(tolerance) => Some(tolerance.as_f64().filter(|it| *it >= 0.0).ok_or_else(error)?),
        };
        match (name, tolerance) {
            ("exact", None) => Ok(Self::Exact),
            ("number", None) => Ok(Self::NUMBER),
            ("number", Some(tolerance)) => Ok(Self::Number { tolerance }),
            ("date", None) => Ok(Self::Date),
            ("text", None) => Ok(Self::Text),
            ("set", None) => Ok(Self::Set),
            ("list", None) => Ok(Self::List),
            _ => Err(error()),
        }
    }

    /// Returns the comparison that a schema states for its values: `x-formwork-compare`, else `date` for the formats `date` and
    /// `date-time`, else `exact` for `enum` and `const`; `None` if it states none.
    ///
    /// # Errors
    /// A message for an invalid `x-formwork-compare`.
    pub fn of_schema(root: &Value, schema: &Value) -> Result<Option<Self>, String> {
        let sources = || [Some(schema), target(root, schema)].into_iter().flatten();
        if let Some(stated) = sources().find_map(|schema| schema.get(KEYWORD)) {
            return Self::parse(stated).map(Some);
        }
        let has = |name: &str| sources().any(|schema| schema.get(name).is_some());
        let format = sources().find_map(|schema| schema.get("format")).and_then(Value::as_str);
        Ok(match format {
            Some("date" | "date-time") => Some(Self::Date),
            _ if has("enum") || has("const") => Some(Self::Exact),
            _ => None,
        })
    }

    /// Returns whether two values are equal. Lists are compared item by item; [`Set`](Self::Set) ignores their order.
    pub fn is_equal(self, expected: &Value, answer: &Value) -> bool {
        match (self, expected, answer) {
            (Self::Set, Value::Array(one), Value::Array(other)) => {
                let contains =
                    |list: &[Value], item: &Value| list.iter().any(|it| Self::Text.is_equal(it, item));
                one.iter().all(|item| contains(other, item)) && other.iter().all(|item| contains(one, item))
            }
            (_, Value::Array(one), Value::Array(other)) => {
                one.len() == other.len()
                    && one.iter().zip(other).all(|(one, other)| self.is_equal(one, other))
            }
            (Self::Exact, ..) => is_same(expected, answer),
            (Self::Number { tolerance }, ..) => match (numbers(expected), numbers(answer)) {
                // A double does not tell apart long integers.
                _ if let (Some(one), Some(other)) = (integer(expected), integer(answer)) => {
                    one.abs_diff(other) as f64 <= tolerance
                }
                (one, other) if one.is_empty() || other.is_empty() => Self::Text.is_equal(expected, answer),
                (one, other) => {
                    one.iter().any(|one| other.iter().any(|other| is_near(*one, *other, tolerance)))
                }
            },
            (Self::Date, Value::String(one), Value::String(other)) => {
                let ((dates_of_one, rest), (dates_of_other, other_rest)) = (dates(one), dates(other));
                if dates_of_one.is_empty() || dates_of_other.is_empty() {
                    return plain(one) == plain(other);
                }
                let (rest, other_rest) = (plain(rest), plain(other_rest));
                let same_rest = rest == other_rest || rest.is_empty() || other_rest.is_empty();
                same_rest && dates_of_one.iter().any(|date| dates_of_other.contains(date))
            }
            (_, Value::String(one), Value::String(other)) => one == other || plain(one) == plain(other),
            (_, Value::Number(one), Value::Number(other)) => {
                let is_fraction = one.is_f64() || other.is_f64();
                compare(one, other).is_eq()
                    || is_fraction
                        && is_near(one.as_f64().unwrap_or(f64::NAN), other.as_f64().unwrap_or(f64::NAN), 1e-6)
            }
            _ => is_same(expected, answer),
        }
    }
}

/// Returns an integer, also in a text of digits.
fn integer(value: &Value) -> Option<i128> {
    match value {
        Value::Number(number) => number.as_i128(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Number(number) => number.as_f64().into_iter().collect(),
        Value::String(text) => readings(text).into_iter().map(crate::decimal::Decimal::as_f64).collect(),
        _ => Vec::new(),
    }
}

/// Returns whether two numbers differ by at most a tolerance. The tolerance is inclusive although sums of binary fractions are
/// inexact.
fn is_near(one: f64, other: f64, tolerance: f64) -> bool {
    let slack = f64::EPSILON * 8.0 * one.abs().max(other.abs());
    (one - other).abs() <= tolerance + slack
}

/// Returns the schema of a member or an item, through references, `allOf` and variants; `None` if the schema does not describe it.
///
/// ```
/// use formwork_evidence::subschema;
/// use formwork_json::Segment;
/// use serde_json::json;
///
/// let schema = json!({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"properties": {"n": {"type": "null"}}}]}}});
/// let member = subschema(&schema, &schema, &Segment::Key("n".to_owned()));
/// assert_eq!(member, Some(&json!({"type": "null"})));
/// ```
pub fn subschema<'s>(root: &'s Value, schema: &'s Value, step: &Segment) -> Option<&'s Value> {
    let (mut open, mut seen) = (vec![schema], 0);
    while let Some(schema) = open.pop() {
        let found = match step {
            Segment::Key(name) => schema.get("properties").and_then(|members| members.get(name)),
            Segment::Index(index) => item(schema, *index).filter(|item| item.is_object()),
        };
        seen += 1;
        // A reference to itself must not make an endless loop.
        if found.is_some() || seen > 64 {
            return found;
        }
        let here = parts(schema)
            .filter(|part| matches!(part.keyword.name, "allOf" | "anyOf" | "oneOf" | "then" | "else"));
        let inner: Vec<_> = target(root, schema).into_iter().chain(here.map(|part| part.schema)).collect();
        open.extend(inner.into_iter().rev());
    }
    None
}
