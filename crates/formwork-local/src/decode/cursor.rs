/// Where in a JSON document its last byte was: as much of a lexer as closing and repetition control need.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cursor {
    in_string: bool,
    escaped: bool,
    /// In a number or a word like `true`.
    in_scalar: bool,
}

impl Cursor {
    /// Goes over more bytes and counts those that begin something that has to be completed later: a container, a
    /// member, an item, a string, a number, a word.
    pub(crate) fn advance(&mut self, bytes: &[u8]) -> usize {
        bytes.iter().filter(|byte| self.step(**byte)).count()
    }

    /// Whether the next byte belongs to a string.
    pub(crate) const fn in_string(self) -> bool {
        self.in_string
    }

    /// Whether these bytes end the string that is being written.
    pub(crate) fn ends_string(mut self, bytes: &[u8]) -> bool {
        bytes.iter().any(|byte| {
            self.step(*byte);
            !self.in_string
        })
    }

    fn step(&mut self, byte: u8) -> bool {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return false;
        }
        let scalar = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
        let begins = match byte {
            b'"' => {
                self.in_string = true;
                true
            }
            b'{' | b'[' | b',' | b':' => true,
            _ => scalar && !self.in_scalar,
        };
        self.in_scalar = scalar;
        begins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_escapes_and_beginnings_are_told_apart() {
        let mut cursor = Cursor::default();
        assert_eq!(cursor.advance(br#"{"a\""#), 2);
        assert!(cursor.in_string());
        assert_eq!(cursor.advance(br#",[{": 12"#), 2);
        assert!(!cursor.in_string());
        assert_eq!(cursor.advance(b"34"), 0);
        assert_eq!(cursor.advance(b", true}"), 2);
    }
}
