//! Numbers that a `serde_json::Number` cannot hold exactly: the type, the comparison of decimals, and a fast search in JSON text.

use std::fmt;

use memchr::memmem;
use serde::{Deserialize, Serialize};

use crate::source::Work;
use crate::tolerant::parse_at;
use crate::{JsonPath, Level, ReadError, Span, locate};

/// A number of a text whose value differs from the number in the [`Value`](serde_json::Value) that was read.
///
/// A `Value` holds integers from -2^63 to 2^64 - 1 exactly, and any other number as a double. A double *changes* a number if its
/// shortest decimal has another value than the text: `0.1` and `1e25` are not changed, `12345678901234567.89` becomes
/// `12345678901234568`.
///
/// ```
/// use formwork_json::{Level, read};
///
/// let text = r#"{"id": 123456789012345678901, "share": 0.10000000000000000001, "price": 12.50}"#;
/// let reading = read(text, Level::Clean)?;
/// let [id, share] = &reading.candidates()[0].rounded[..] else { panic!() };
/// assert!(!id.is_tolerable() && share.is_tolerable());
/// assert_eq!(share.to_string(), "$.share: the number 0.10000000000000000001 was rounded to 0.1");
/// # Ok::<(), formwork_json::ReadError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rounded {
    /// The path of the number in the document.
    pub path: JsonPath,
    /// The number as JSON text.
    pub text: String,
}

impl Rounded {
    /// Returns whether the number is a fraction within the range of a double, so that its rounded value is usable with a warning.
    /// An integer (also `1e30` and `12.0`, by value) with other digits is a different integer, and a number beyond the range of a
    /// double has no value at all; it is read as `null`.
    pub fn is_tolerable(&self) -> bool {
        double(&self.text).is_some() && !Decimal::of(&self.text).is_integer()
    }

    /// Returns a sentence about the number, cut at 60 digits: the number that it was rounded to, or the numbers that can be kept.
    pub fn detail(&self) -> String {
        let (text, cut) = match self.text.get(..60) {
            Some(head) if self.text.len() > 61 => (head, "…"),
            _ => (self.text.as_str(), ""),
        };
        match self.kept() {
            Some(kept) if self.is_tolerable() => format!("the number {text}{cut} was rounded to {kept}"),
            Some(_) => format!(
                "the integer {text}{cut} cannot be kept exactly: write at most 19 digits without fraction and exponent, or a string"
            ),
            None => format!("the number {text}{cut} is beyond the maximum of 1.7e308"),
        }
    }

    /// Returns the shortest text of the double that was read in place of the number; `None` beyond the range of a double.
    pub fn kept(&self) -> Option<String> {
        double(&self.text).map(shortest)
    }
}

/// Writes the path and the [detail](Rounded::detail).
impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.detail())
    }
}

/// Returns the numbers of a JSON text that a [`Value`](serde_json::Value) cannot hold exactly, in the order of the text; none if the
/// text is not JSON. For texts that another parser reads: the candidates of [`read`](crate::read) have them already.
///
/// ```
/// let rounded = formwork_json::rounded(r#"{"seeds": [1, 12345678901234567890123]}"#);
/// assert_eq!(rounded[0].path.to_string(), "$.seeds[1]");
/// ```
pub fn rounded(text: &str) -> Vec<Rounded> {
    if may_round(text) { all_rounded(text) } else { Vec::new() }
}

/// Returns the rounded fractions of a JSON text that another parser reads.
///
/// # Errors
/// [`ReadError::Inexact`] for the first number that is not [tolerable](Rounded::is_tolerable).
///
/// ```
/// use formwork_json::exact;
///
/// assert_eq!(exact(r#"{"share": 0.1234567890123456789}"#).map(|rounded| rounded.len()), Ok(1));
/// let error = exact(r#"{"id": 123456789012345678901}"#).unwrap_err();
/// assert_eq!(error.at(), Some(7));
/// ```
pub fn exact(text: &str) -> Result<Vec<Rounded>, ReadError> {
    let rounded = rounded(text);
    refused(text, &rounded).map_or(Ok(rounded), Err)
}

/// Returns the error for the first number that cannot be tolerated.
pub(crate) fn refused(text: &str, rounded: &[Rounded]) -> Option<ReadError> {
    let number = rounded.iter().find(|number| !number.is_tolerable())?;
    let at = locate(text, &number.path).map_or(0, |span| span.start);
    Some(ReadError::Inexact { at, message: number.to_string() })
}

/// Returns the changed numbers of a JSON text, by a second reading that knows the text of each number.
pub(crate) fn all_rounded(text: &str) -> Vec<Rounded> {
    let lead = text.len() - text.trim_start().len();
    let region = Span::new(lead, text.trim_end().len());
    parse_at(text, region, Level::Strict, &Work::for_len(text.len()))
        .map_or_else(|_| Vec::new(), |it| it.rounded)
}

/// Returns whether a text may contain a number that a double changes, without reading the text as JSON.
pub(crate) fn may_round(text: &str) -> bool {
    has_many_digits(text) || has_small_exponent(text)
}

/// Returns whether a `Value` would change a JSON number.
pub(crate) fn changes(number: &str) -> bool {
    // Doubles keep 15 digits, unless the exponent reaches the end of their range.
    if number.len() < DIGITS && !number.contains(['e', 'E']) {
        return false;
    }
    if number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok() {
        return false;
    }
    double(number).is_none_or(|double| Decimal::of(&shortest(double)) != Decimal::of(number))
}

/// The minimum number of digits of a number within the usual range that a double changes.
const DIGITS: usize = 16;

/// Returns whether a run of digits and points is long enough for a number that a double changes, and is changed. Every run of that
/// length covers a byte at a multiple of the length, so that the other bytes are skipped.
fn has_many_digits(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut at = DIGITS - 1;
    while let Some(byte) = bytes.get(at) {
        if is_of_mantissa(*byte) {
            if is_changed_around(text, at) {
                return true;
            }
            at = mantissa_end(bytes, at);
        }
        at += DIGITS;
    }
    false
}

/// Returns whether a number with an exponent of at least three digits is changed. Exponents above the range of a double are errors
/// of the strict parser, so only negative ones count.
fn has_small_exponent(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_number = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        let digits = bytes.get(at + 2..at + 5);
        before.is_some_and(|byte| is_of_mantissa(*byte))
            && digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_digit))
            && is_changed_around(text, at - 1)
    };
    let mut exponents = memmem::find_iter(bytes, b"e-").chain(memmem::find_iter(bytes, b"E-"));
    exponents.any(is_number)
}

const fn is_of_mantissa(byte: u8) -> bool {
    byte.is_ascii_digit() || byte == b'.'
}

fn mantissa_end(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().position(|byte| !is_of_mantissa(*byte)).unwrap_or(rest.len())
}

/// Returns whether a `Value` would change the number around a byte of its mantissa. The text may be a part of a string, and no number.
fn is_changed_around(text: &str, at: usize) -> bool {
    let bytes = text.as_bytes();
    let before = bytes.get(..at).unwrap_or_default();
    let mut start = before.iter().rposition(|byte| !is_of_mantissa(*byte)).map_or(0, |other| other + 1);
    start -= usize::from(before.get(..start).is_some_and(|before| before.ends_with(b"-")));
    let mut end = mantissa_end(bytes, at);
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let digits = bytes.get(end + 1 + sign..).unwrap_or_default();
        let count = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
        if count > 0 {
            end += 1 + sign + count;
        }
    }
    text.get(start..end).is_some_and(|number| number.parse::<f64>().is_ok() && changes(number))
}

/// Returns the double that is nearest to a JSON number; `None` beyond the range of a double.
fn double(number: &str) -> Option<f64> {
    number.parse().ok().filter(|double: &f64| double.is_finite())
}

/// Returns the shortest decimal that is read as this double.
fn shortest(double: f64) -> String {
    serde_json::Number::from_f64(double).map(|number| number.to_string()).unwrap_or_default()
}

/// The value of a JSON number: `0.digits * 10^exponent`, with digits that neither begin nor end with zero. Two texts have the same
/// value if and only if their decimals are equal.
#[derive(Debug, PartialEq, Eq)]
struct Decimal {
    is_negative: bool,
    digits: Vec<u8>,
    /// Exponents beyond the range of an `i64` are cut to it: such a number is zero or infinite as a double.
    exponent: i64,
}

impl Decimal {
    fn of(number: &str) -> Self {
        let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
        let is_negative = mantissa.starts_with('-');
        let mantissa = mantissa.trim_start_matches(['-', '+']);
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let end = if exponent.starts_with('-') { i64::MIN } else { i64::MAX };
        let shift = exponent.parse::<i64>().unwrap_or(end);
        let all: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        let first = all.iter().position(|digit| *digit != b'0').unwrap_or(all.len());
        let last = all.iter().rposition(|digit| *digit != b'0').map_or(first, |last| last + 1);
        let digits = all.get(first..last).unwrap_or_default().to_vec();
        if digits.is_empty() {
            return Self { is_negative: false, digits, exponent: 0 };
        }
        let point = whole.len() as i64 - first as i64;
        Self { is_negative, digits, exponent: shift.saturating_add(point) }
    }

    fn is_integer(&self) -> bool {
        self.exponent >= self.digits.len() as i64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn decimals_are_equal_by_value() {
        for (one, other) in [
            ("0.1", "1e-1"),
            ("12.50", "1250E-2"),
            ("-0", "0.000e99999999999999999999"),
            ("100", "1e2"),
            ("1e+25", "10000000000000000000000000.0"),
            ("-1.5e3", "-1500"),
        ] {
            assert_eq!(Decimal::of(one), Decimal::of(other), "{one} {other}");
        }
        for (one, other) in
            [("0.1", "0.01"), ("1", "-1"), ("1e2", "1e3"), ("1", "0"), ("1e99999999999999999999", "1e9")]
        {
            assert_ne!(Decimal::of(one), Decimal::of(other), "{one} {other}");
        }
    }

    #[test]
    fn numbers_are_changed_only_if_their_value_changes() {
        for kept in [
            "0",
            "-0",
            "0.1",
            "1e25",
            "1e2",
            "612.0",
            "9007199254740993",
            "18446744073709551615",
            "-9223372036854775808",
            "100000000000000000000",
            "1.7976931348623157e308",
            "5e-324",
            "0.30000000000000004",
            "0e999999999",
            "12.50",
        ] {
            assert!(!changes(kept), "{kept}");
        }
        for (changed, is_tolerable) in [
            ("9007199254740993.0", false),
            ("18446744073709551616", false),
            ("-9223372036854775809", false),
            ("123456789012345678901", false),
            ("1.23456789012345678901e20", false),
            ("12345678901234567.89", true),
            ("0.1234567890123456789", true),
            ("4.94e-324", true),
            ("1e-400", true),
            ("1e-999999999999999999999999", true),
            ("1e400", false),
            ("-1e999999999", false),
        ] {
            assert!(changes(changed), "{changed}");
            let rounded = Rounded { path: JsonPath::root(), text: changed.to_owned() };
            assert_eq!(rounded.is_tolerable(), is_tolerable, "{changed}");
        }
    }

    proptest! {
        /// The search without parsing finds every number that is changed, at every offset.
        #[test]
        fn no_changed_number_is_overlooked(
            before in "[a-z\"{}:, e-]{0,40}",
            number in "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,30})?([eE][+-]?[0-9]{1,4})?",
            after in "[}\\], ][a-z\"{}:, 0-9]{0,40}",
        ) {
            let is_small = double(&number).is_some();
            let text = format!("{before} {number}{after}");
            prop_assert!(!changes(&number) || !is_small || may_round(&text), "{text}");
        }

        #[test]
        fn integers_that_fit_are_never_changed(number in any::<i64>(), positive in any::<u64>()) {
            prop_assert!(!changes(&number.to_string()) && !changes(&positive.to_string()));
        }

        #[test]
        fn doubles_keep_their_own_text(double in any::<f64>()) {
            prop_assume!(double.is_finite());
            for text in [shortest(double), format!("{double:e}"), format!("{double}")] {
                prop_assert!(!changes(&text), "{}", text);
            }
        }
    }
}
