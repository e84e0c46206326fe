//! The search for numbers in JSON text that a `serde_json::Number` cannot hold exactly.

use std::ops::Range;

use memchr::memmem;

use crate::number::{DIGITS, changes};
use crate::source::Work;
use crate::tolerant::parse_at;
use crate::{Level, ReadError, Rounded, Span, locate};

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

/// Returns whether a run of digits and points is long enough for a number that a double changes, and is changed. Every run of that
/// length covers a byte at a multiple of the length, so that the other bytes are skipped.
pub(crate) fn has_many_digits(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut at = DIGITS - 1;
    while let Some(byte) = bytes.get(at) {
        if is_of_mantissa(*byte) {
            let mantissa = mantissa_around(bytes, at);
            at = mantissa.end;
            if mantissa.len() >= DIGITS && changes(number_of(text, &mantissa)) {
                return true;
            }
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
            && changes(number_of(text, &mantissa_around(bytes, at - 1)))
    };
    let mut exponents = memmem::find_iter(bytes, b"e-").chain(memmem::find_iter(bytes, b"E-"));
    exponents.any(is_number)
}

const fn is_of_mantissa(byte: u8) -> bool {
    byte.is_ascii_digit() || byte == b'.'
}

/// Returns the digits and points around a byte that is one of them.
fn mantissa_around(bytes: &[u8], at: usize) -> Range<usize> {
    let (before, after) = bytes.split_at(at.min(bytes.len()));
    let start = before.iter().rposition(|byte| !is_of_mantissa(*byte)).map_or(0, |other| other + 1);
    let len = after.iter().position(|byte| !is_of_mantissa(*byte)).unwrap_or(after.len());
    start..at + len
}

/// Returns the number with this mantissa. The text may be a part of a string, and no number.
fn number_of<'t>(text: &'t str, mantissa: &Range<usize>) -> &'t str {
    let bytes = text.as_bytes();
    let Range { mut start, mut end } = *mantissa;
    start -= usize::from(bytes.get(..start).is_some_and(|before| before.ends_with(b"-")));
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let digits = bytes.get(end + 1 + sign..).unwrap_or_default();
        let count = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
        if count > 0 {
            end += 1 + sign + count;
        }
    }
    text.get(start..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::number::double;

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
    }
}
