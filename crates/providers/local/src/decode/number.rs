use super::cursor::Cursor;

/// The number of digits of an integer, and of an exponent, that always fit into a double.
const SURELY: (usize, usize) = (300, 2);

/// The current number, if one is being written.
#[derive(Debug, Default)]
pub(crate) struct Number {
    text: Vec<u8>,
}

impl Number {
    /// Reads bytes of the document, with the state after them.
    pub(crate) fn push(&mut self, bytes: &[u8], after: Cursor) {
        let tail = bytes.iter().rev().take_while(|byte| is_numeric(**byte)).count();
        if after.in_string() || tail < bytes.len() {
            self.text.clear();
        }
        if !after.in_string() {
            self.text.extend_from_slice(bytes.get(bytes.len() - tail..).unwrap_or_default());
        }
    }

    /// Returns whether no number is being written.
    pub(crate) const fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns whether these bytes make the number larger than any double, which no parser could read.
    pub(crate) fn is_unreadable(&self, more: &[u8]) -> bool {
        let text = self.with(more);
        let digits = exponent(&text);
        if text.len() <= SURELY.0 && digits.len() <= SURELY.1 {
            return false;
        }
        // The missing rest of an exponent can be 0.
        let whole = std::str::from_utf8(&text).map(|text| text.trim_end_matches(['e', 'E', '+', '-', '.']));
        whole.ok().and_then(|text| text.parse::<f64>().ok()).is_some_and(f64::is_infinite)
    }

    /// Returns whether these bytes make an integer longer than `integer` characters, another number longer than
    /// `other`, or an exponent longer than `digits`, and the number longer than `spared`.
    pub(crate) fn is_longer(
        &self,
        more: &[u8],
        integer: usize,
        other: usize,
        digits: usize,
        spared: usize,
    ) -> bool {
        let text = self.with(more);
        let is_integer = text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-');
        let most = if is_integer { integer } else { other };
        text.len() > spared && (text.len() > most || exponent(&text).len() > digits)
    }

    /// Returns the number with these bytes, as far as they belong to it.
    fn with(&self, more: &[u8]) -> Vec<u8> {
        let more = more.iter().take_while(|byte| is_numeric(**byte));
        self.text.iter().chain(more).copied().collect()
    }
}

/// Returns whether a byte outside strings can belong to a number.
pub(crate) const fn is_numeric(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+' | b'e' | b'E')
}

/// Returns the digits of an exponent.
fn exponent(text: &[u8]) -> &[u8] {
    let after = text.iter().rposition(|byte| matches!(byte, b'e' | b'E')).map_or(text.len(), |at| at + 1);
    let digits = text.get(after..).unwrap_or_default();
    digits.strip_prefix(b"+").or(digits.strip_prefix(b"-")).unwrap_or(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &[u8]) -> Number {
        let mut number = Number::default();
        number.push(text, Cursor::default());
        number
    }

    #[test]
    fn numbers_end_before_they_mean_nothing() {
        let is_longer = |text: &[u8], more: &[u8]| number(text).is_longer(more, 18, 24, 2, 0);
        assert!(!is_longer(b"12345678901234567", b"8") && is_longer(b"123456789012345678", b"9"));
        assert!(!is_longer(b"123456789012345678", b".5") && !is_longer(b"123456789012345678", b", 9"));
        assert!(is_longer(b"0.3333333333333333333333", b"3"));
        assert!(!is_longer(b"1e-", b"30") && is_longer(b"1e", b"300"));
        assert!(!number(b"123456789012345678").is_longer(b"9", 18, 24, 2, 19));
    }

    #[test]
    fn numbers_beyond_every_double_are_unreadable() {
        for (text, more, expected) in [
            (&b"1e30"[..], &b"8"[..], false),
            (b"1e30", b"9", true),
            (b"-9.9E+99", b"9", true),
            (b"1e-99", b"9", false),
            (b"1e000000", b"1", false),
            (b"0e99", b"9", false),
            (&[b'1'; 308], b"1", false),
            (&[b'2'; 308], b"2", true),
            (&[b'2'; 308], b", 2", false),
            (&[b'2'; 308], b"e", false),
        ] {
            assert_eq!(number(text).is_unreadable(more), expected, "{text:?} {more:?}");
            if expected || !more.starts_with(b",") {
                let whole = [text, more].concat();
                let whole = std::str::from_utf8(&whole).unwrap().trim_end_matches('e');
                assert_eq!(serde_json::from_str::<serde_json::Value>(whole).is_err(), expected, "{whole}");
            }
        }
    }
}
