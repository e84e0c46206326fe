//! The comparison of values.

use formwork_json::{Segment, compare, is_same};
use formwork_keywords::{item, parts, target};
use serde_json::{Value, json};
use time::{Date, Month, PrimitiveDateTime, Time, UtcOffset};

use crate::clock::offset;
use crate::date::dates;
use crate::decimal::readings;
use crate::text::{exactly, plain};

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
    /// `date-time`: texts that state the same instant, or the same date and time of day without a zone. Without a time in both it
    /// is as [`Date`](Self::Date); a time in one of them alone makes them different.
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
    pub const NUMBER: Self = Self::Number { tolerance: 1e-6 };

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
            ("number", None) => Ok(Self::NUMBER),
            ("number", Some(tolerance)) => Ok(Self::Number { tolerance }),
            ("date", None) => Ok(Self::Date),
            ("date-time", None) => Ok(Self::DateTime),
            ("text", None) => Ok(Self::Text),
            ("set", None) => Ok(Self::Set),
            ("list", None) => Ok(Self::List),
            _ => Err(error()),
        }
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
            (Self::DateTime, Value::String(one), Value::String(other))
                if has_time(one) || has_time(other) =>
            {
                match (Instant::of(one), Instant::of(other)) {
                    (Some(one), Some(other)) => one.is_same(other),
                    (None, None) => exactly(one) == exactly(other),
                    _ => false,
                }
            }
            (Self::Date | Self::DateTime, Value::String(one), Value::String(other)) => {
                let ((dates_of_one, rest), (dates_of_other, other_rest)) = (dates(one), dates(other));
                if dates_of_one.is_empty() || dates_of_other.is_empty() {
                    return plain(one) == plain(other);
                }
                let (rest, other_rest) = (plain(rest), plain(other_rest));
                let same_rest = rest == other_rest || rest.is_empty() || other_rest.is_empty();
                same_rest && dates_of_one.iter().any(|date| dates_of_other.contains(date))
            }
            (_, Value::String(one), Value::String(other)) => one == other || exactly(one) == exactly(other),
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

/// A date with a time of day.
#[derive(Debug, Clone, Copy)]
struct Instant {
    local: PrimitiveDateTime,
    /// The zone; `None` if it is not stated.
    zone: Option<UtcOffset>,
}

impl Instant {
    /// Reads a date and time as RFC 3339 and ISO 8601 write them, also with a space between them, without seconds or without a zone.
    fn of(text: &str) -> Option<Self> {
        let text = text.trim();
        let (date, time) = (text.get(..10)?, text.get(11..)?);
        let [year, month, day] = numbers_of(date, '-')?;
        let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
        let date = Date::from_calendar_date(year.into(), month, u8::try_from(day).ok()?).ok()?;
        let (clock, zone) = match time.find(['Z', 'z', '+', '-']) {
            None => (time, None),
            Some(at) => (time.get(..at)?.trim_end(), Some(zone_of(time.get(at..)?)?)),
        };
        let (whole, fraction) = clock.split_once(['.', ',']).unwrap_or((clock, "0"));
        let [hour, minute, second] =
            numbers_of(whole, ':').or_else(|| numbers_of(&format!("{whole}:00"), ':'))?;
        let [hour, minute, second] =
            [u8::try_from(hour).ok()?, u8::try_from(minute).ok()?, u8::try_from(second).ok()?];
        let millis = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
        let time = Time::from_hms_milli(hour, minute, second, millis).ok()?;
        let is_between = matches!(text.as_bytes().get(10), Some(b'T' | b't' | b' '));
        is_between.then_some(Self { local: PrimitiveDateTime::new(date, time), zone })
    }

    fn is_same(self, other: Self) -> bool {
        match (self.zone, other.zone) {
            (Some(one), Some(two)) => self.local.assume_offset(one) == other.local.assume_offset(two),
            _ => self.local == other.local,
        }
    }
}

/// Returns three numbers of digits alone.
fn numbers_of(text: &str, between: char) -> Option<[u16; 3]> {
    let number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())?;
    let numbers: Option<Vec<u16>> = text.split(between).map(number).collect();
    numbers?.try_into().ok()
}

/// Returns a zone: `Z`, `+02:00`, `+0200`, `+02` or `+2`.
fn zone_of(text: &str) -> Option<UtcOffset> {
    if text.eq_ignore_ascii_case("z") {
        return Some(UtcOffset::UTC);
    }
    UtcOffset::from_whole_seconds(offset(text)? * 60).ok()
}

/// Returns whether a text has a time of day after a date.
fn has_time(text: &str) -> bool {
    text.contains(':')
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

/// Returns the schemas that a schema refers to and combines.
fn combined<'s>(root: &'s Value, schema: &'s Value) -> Vec<&'s Value> {
    let here = parts(schema)
        .filter(|part| matches!(part.keyword.name, "allOf" | "anyOf" | "oneOf" | "then" | "else"));
    target(root, schema).into_iter().chain(here.map(|part| part.schema)).collect()
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

/// Returns the schema of a member or an item, through references, `allOf` and variants; `None` if the schema does not describe it. A
/// member without a schema of its own has that of `additionalProperties`.
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
            Segment::Key(name) => schema.get("properties").and_then(|members| members.get(name)),
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
