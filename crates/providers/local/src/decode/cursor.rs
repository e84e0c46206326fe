/// Tracks whether the last byte of a JSON document is inside a string: the part of a lexer that the restraint needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    in_string: bool,
    escaped: bool,
}

impl Cursor {
    /// Reads more bytes.
    pub(crate) fn advance(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.step(*byte));
    }

    /// Returns whether the next byte belongs to a string.
    pub(crate) const fn in_string(self) -> bool {
        self.in_string
    }

    /// Returns whether these bytes end the current string.
    pub(crate) fn ends_string(mut self, bytes: &[u8]) -> bool {
        bytes.iter().any(|byte| {
            self.step(*byte);
            !self.in_string
        })
    }

    const fn step(&mut self, byte: u8) {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.in_string => self.escaped = true,
            b'"' => self.in_string = !self.in_string,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_quotes_end_no_string() {
        let mut cursor = Cursor::default();
        cursor.advance(br#"{"a\""#);
        assert!(cursor.in_string() && !cursor.ends_string(b"b") && cursor.ends_string(br#"b": "#));
        cursor.advance(br#",[{": 12"#);
        assert!(!cursor.in_string());
    }
}
