//! The comparison of values.

use std::slice::from_ref;

use formwork_json::{Segment, compare, is_same};
use formwork_keywords::{find, item, target};
use regex::Regex;
use serde_json::{Value, json};

use crate::clock::Time;
use crate::date::{Date, dates};
use crate::decimal::{Decimal, agree, amount};
use crate::text::{is_same_text, plain};

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
    /// `number`: numbers, also in texts and with a currency or `%`, that differ by at most `tolerance`. Two units that differ make them
    /// different.
    Number {
        /// The maximum difference; `None`: 0.000001, multiplied by the larger number if that is below 1.
        tolerance: Option<f64>,
    },
    /// `date`: texts that state the same date in any notation. Other texts are compared as by [`Text`](Self::Text).
    Date,
    /// `date-time`: texts that state the same instant in any notation, or the same date and time of day without a zone. Without a time
    /// in both it is as [`Date`](Self::Date); a time in one of them alone makes them different.
    DateTime,
    /// `text`: texts without their case, white space and punctuation. Symbols, decimal marks and the sign of a number count.
    Text,
    /// `set`: lists without their order and repeated items.
    Set,
    /// `list`: lists in their order.
    List,
}

impl Compare {
    /// The comparison of numbers by default.
    pub const NUMBER: Self = Self::Number { tolerance: None };

    /// Parses a value of `x-formwork-compare`.
    ///
    /// # Errors
    /// A message that lists the valid values.
    pub fn parse(value: &Value) -> Result<Self, String> {
        let error = || {
            let expected = "expected exact, number, date, date-time, text, set or list, or {\"as\": \"number\", \"tolerance\": 0.01}";
            format!("`{KEYWORD}` is {value}: {expected}")
        };
        let name = value.as_str().or_else(|| value.get("as")?.as_str()).ok_or_else(error)?;
        let is_known = |name: &String| matches!(name.as_str(), "as" | "tolerance");
        if value.as_object().is_some_and(|members| !members.keys().all(is_known)) {
            return Err(error());
        }
        let tolerance = match value.get("tolerance") {
            None => None,
            Some(tolerance) => Some(tolerance.as_f64().filter(|it| *it >= 0.0).ok_or_else(error)?),
        };
        match (name, tolerance) {
            ("exact", None) => Ok(Self::Exact),
            ("number", tolerance) => Ok(Self::Number { tolerance }),
            ("date", None) => Ok(Self::Date),
            ("date-time", None) => Ok(Self::DateTime),
            ("text", None) => Ok(Self::Text),
            ("set", None) => Ok(Self::Set),
            ("list", None) => Ok(Self::List),
            _ => Err(error()),
        }
    }

    /// Removes `x-formwork-compare` from a schema and all schemas in it. The rest does not depend on how answers are compared.
    ///
    /// # Errors
    /// The location and the message of [`parse`](Self::parse) for the first invalid value.
    pub fn take(schema: &mut Value) -> Result<(), String> {
        while let Some(at) = find(schema, |schema| schema.get(KEYWORD).is_some()) {
            let stated = schema.pointer_mut(&at).and_then(|schema| schema.as_object_mut()?.remove(KEYWORD));
            Self::parse(&stated.unwrap_or_default()).map_err(|error| format!("#{at}/{KEYWORD}: {error}"))?;
        }
        Ok(())
    }

    /// Returns the comparison that a schema states for its values, also in `allOf` and variants: `x-formwork-compare`, else `date` and
    /// `date-time` for these formats, else `exact` for `enum` and `const`; `None` if it states none.
    ///
    /// # Errors
    /// A message for an invalid `x-formwork-compare`.
    pub fn of_schema(root: &Value, schema: &Value) -> Result<Option<Self>, String> {
        let sources = within(root, schema);
        if let Some(stated) = sources.iter().find_map(|schema| schema.get(KEYWORD)) {
            return Self::parse(stated).map(Some);
        }
        // A variant that is null says nothing about other values, and one of any text takes more than the others list.
        let is_null = |schema: &Value| {
            schema.get("const").is_some_and(Value::is_null) || schema.get("enum") == Some(&json!([null]))
        };
        let is_list = |schema: &&&Value| schema.get("enum").or_else(|| schema.get("const")).is_some();
        let is_text = |schema: &&&Value| schema.get("type") == Some(&json!("string")) && !is_list(schema);
        let is_choice = sources.iter().any(|schema| is_list(&schema) && !is_null(schema));
        let is_open = sources.iter().skip(1).any(|schema| is_text(&schema));
        let mut formats = sources.iter().filter_map(|schema| schema.get("format")).filter_map(Value::as_str);
        Ok(match formats.find(|format| format.starts_with("date")) {
            Some("date") => Some(Self::Date),
            Some("date-time") => Some(Self::DateTime),
            _ if is_choice && !is_open => Some(Self::Exact),
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
            (Self::Number { tolerance }, ..) => match (amounts(expected), amounts(answer)) {
                // A double does not tell apart long integers.
                _ if let (Some(one), Some(other)) = (integer(expected), integer(answer)) => {
                    one.abs_diff(other) as f64 <= tolerance.unwrap_or_default()
                }
                ((one, _), (other, _)) if one.is_empty() || other.is_empty() => {
                    Self::Text.is_equal(expected, answer)
                }
                ((one, units), (other, others)) => {
                    let is_any = |one: &f64| other.iter().any(|other| is_near(*one, *other, tolerance));
                    agree(&units, &others) && one.iter().any(is_any)
                }
            },
            (Self::DateTime, Value::String(one), Value::String(other)) => {
                match (instant(one), instant(other)) {
                    (Some(one), Some(other)) => is_same_instant(&one, &other),
                    (None, None) if !one.contains(':') && !other.contains(':') => {
                        Self::Date.is_equal(expected, answer)
                    }
                    _ => is_same_text(one, other),
                }
            }
            (Self::Date, Value::String(one), Value::String(other)) => {
                let ((dates_of_one, rest), (dates_of_other, other_rest)) = (dates(one), dates(other));
                if dates_of_one.is_empty() || dates_of_other.is_empty() {
                    return plain(one) == plain(other);
                }
                let (rest, other_rest) = (plain(rest), plain(other_rest));
                let same_rest = rest == other_rest || rest.is_empty() || other_rest.is_empty();
                same_rest && dates_of_one.iter().any(|date| dates_of_other.contains(date))
            }
            (_, Value::String(one), Value::String(other)) => {
                one == other || is_same_text(one, other) && !are_other_dates(one, other)
            }
            (_, Value::Number(one), Value::Number(other)) => {
                let is_fraction = one.is_f64() || other.is_f64();
                compare(one, other).is_eq()
                    || is_fraction
                        && is_near(one.as_f64().unwrap_or(f64::NAN), other.as_f64().unwrap_or(f64::NAN), None)
            }
            _ => is_same(expected, answer),
        }
    }
}

/// Returns whether two texts are dates, and no date is both: `2024-1-17` and `2024-11-7` have the same digits.
fn are_other_dates(one: &str, other: &str) -> bool {
    let ((one, rest), (other, other_rest)) = (dates(one.trim()), dates(other.trim()));
    rest.is_empty()
        && other_rest.is_empty()
        && !one.is_empty()
        && !other.is_empty()
        && one.iter().all(|date| !other.contains(date))
}

/// Returns the dates that a text may be, with the time of day after them; `None` for another text.
fn instant(text: &str) -> Option<(Vec<Date>, Time)> {
    let (dates, rest) = dates(text.trim());
    Time::of(rest).filter(|_| !dates.is_empty()).map(|time| (dates, time))
}

/// Returns whether two instants may be the same. Without a zone of both, the local times are compared.
fn is_same_instant((one, time): &(Vec<Date>, Time), (other, other_time): &(Vec<Date>, Time)) -> bool {
    let in_utc = time.has_zone() && other_time.has_zone();
    let mut instants = one.iter().filter_map(|date| time.on(*date, in_utc));
    instants.any(|one| other.iter().any(|date| other_time.on(*date, in_utc) == Some(one)))
}

/// Returns a schema, and the ones that it refers to and combines.
pub(crate) fn within<'s>(root: &'s Value, schema: &'s Value) -> Vec<&'s Value> {
    let (mut open, mut all) = (vec![schema], Vec::new());
    while let Some(schema) = open.pop() {
        // A reference to itself must not make an endless loop.
        if all.len() > 64 {
            break;
        }
        all.push(schema);
        open.extend(combined(root, schema).into_iter().rev());
    }
    all
}

/// Returns the schemas that a schema refers to and combines, in the order of the document.
fn combined<'s>(root: &'s Value, schema: &'s Value) -> Vec<&'s Value> {
    let here = schema.as_object().into_iter().flatten();
    let here =
        here.filter(|(name, _)| matches!(name.as_str(), "allOf" | "anyOf" | "oneOf" | "then" | "else"));
    let here = here.flat_map(|(_, part)| part.as_array().map_or(from_ref(part), Vec::as_slice));
    target(root, schema).into_iter().chain(here).collect()
}

/// Returns an integer, also in a text of digits.
fn integer(value: &Value) -> Option<i128> {
    match value {
        Value::Number(number) => number.as_i128(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// Returns the numbers that a value may be, with the units of a text.
fn amounts(value: &Value) -> (Vec<f64>, Vec<&'static str>) {
    match value {
        Value::Number(number) => (number.as_f64().into_iter().collect(), Vec::new()),
        Value::String(text) => {
            let (values, units) = amount(text.trim());
            (values.into_iter().map(Decimal::as_f64).collect(), units)
        }
        _ => <_>::default(),
    }
}

/// Returns whether two numbers differ by at most a tolerance. The tolerance is inclusive although sums of binary fractions are
/// inexact.
fn is_near(one: f64, other: f64, tolerance: Option<f64>) -> bool {
    let larger = one.abs().max(other.abs());
    (one - other).abs() <= tolerance.unwrap_or(1e-6 * larger.min(1.0)) + f64::EPSILON * 8.0 * larger
}

/// Returns the schema of a member or an item, through references, `allOf` and variants; `None` if the schema does not describe it. A
/// member without a schema of its own has that of a pattern, else that of `additionalProperties`.
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
    let mut other = None;
    for schema in within(root, schema) {
        let found = match step {
            Segment::Key(name) => {
                let fits = |pattern: &str| Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(name));
                let patterns =
                    schema.get("patternProperties").and_then(Value::as_object).into_iter().flatten();
                let named = schema.get("properties").and_then(|members| members.get(name));
                named.or_else(|| {
                    patterns.filter(|(pattern, _)| fits(pattern)).map(|(_, schema)| schema).next()
                })
            }
            Segment::Index(index) => item(schema, *index).filter(|item| item.is_object()),
        };
        if found.is_some() {
            return found;
        }
        if let (Segment::Key(_), None) = (step, other) {
            other = schema.get("additionalProperties").filter(|schema| schema.is_object());
        }
    }
    other
}
