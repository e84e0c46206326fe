//! Numbers that a `serde_json::Number` cannot hold exactly, and the comparison of decimals.

use std::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};

use crate::JsonPath;

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
                "the integer {text}{cut} cannot be kept exactly: write an integer from {} to {} without fraction and exponent, or a \
                 string",
                i64::MIN,
                u64::MAX
            ),
            None => format!("the number {text}{cut} is beyond the maximum of {:e}", f64::MAX),
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

/// Returns whether a `Value` would change a JSON number; `false` for a text that is no number.
pub(crate) fn changes(number: &str) -> bool {
    let is_integer = !number.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
    // Doubles keep 15 digits, unless the exponent reaches the end of their range; integers of 64 bits keep 18.
    let has_exponent = || number.bytes().any(|byte| matches!(byte, b'e' | b'E'));
    if number.len() < DIGITS && (is_integer || !has_exponent()) || is_integer && number.len() < 19 {
        return false;
    }
    if is_integer && (number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok()) {
        return false;
    }
    let Ok(double) = number.parse::<f64>() else { return false };
    if !double.is_finite() {
        return true;
    }
    !is_shortest(number, double) && Decimal::of(&shortest(double)) != Decimal::of(number)
}

/// Returns whether a JSON number is the shortest text of this double, which is then the nearest double and does not change it.
fn is_shortest(number: &str, double: f64) -> bool {
    /// The rest of a text to which the same text is written.
    struct Rest<'a>(&'a str);

    impl fmt::Write for Rest<'_> {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0 = self.0.strip_prefix(text).ok_or(fmt::Error)?;
            Ok(())
        }
    }

    let mut rest = Rest(number);
    let written = serde_json::Number::from_f64(double).map(|double| write!(rest, "{double}"));
    written.is_some_and(|written| written.is_ok()) && rest.0.is_empty()
}

/// The minimum number of digits of a number within the usual range that a double changes.
pub(crate) const DIGITS: usize = 16;

/// Returns the double that is nearest to a JSON number; `None` beyond the range of a double.
pub(crate) fn double(number: &str) -> Option<f64> {
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
