/// Turns tokens' bytes into text, a whole character at a time.
#[derive(Debug, Default)]
pub(crate) struct Utf8 {
    /// The beginning of a character whose end has not come yet.
    pending: Vec<u8>,
    /// Bytes of text that were given out.
    emitted: usize,
}

impl Utf8 {
    /// The text that is complete with these bytes. What can never become a character is replaced (U+FFFD).
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        self.pending.extend_from_slice(bytes);
        let mut text = String::new();
        let mut rest = self.pending.as_slice();
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    rest = &[];
                    break;
                }
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(valid));
                    rest = after;
                    let Some(broken) = error.error_len() else { break };
                    text.push(char::REPLACEMENT_CHARACTER);
                    rest = &rest[broken..];
                }
            }
        }
        self.pending = rest.to_vec();
        self.emitted += text.len();
        text
    }

    /// The text at the end of the answer: a character that was never finished is replaced.
    pub(crate) fn finish(&mut self) -> String {
        if self.pending.is_empty() {
            return String::new();
        }
        self.pending.clear();
        self.emitted += char::REPLACEMENT_CHARACTER.len_utf8();
        char::REPLACEMENT_CHARACTER.to_string()
    }

    /// Bytes of text so far.
    pub(crate) const fn len(&self) -> usize {
        self.emitted
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_cut_of_a_text_gives_the_text(text in "\\PC{0,20}", cut in 1usize..5) {
            let mut utf8 = Utf8::default();
            let mut out: String = text.as_bytes().chunks(cut).map(|part| utf8.push(part)).collect();
            out.push_str(&utf8.finish());
            prop_assert_eq!(utf8.len(), text.len());
            prop_assert_eq!(out, text);
        }

        #[test]
        fn any_bytes_give_what_lossy_decoding_gives(bytes in proptest::collection::vec(any::<u8>(), 0..30)) {
            let mut utf8 = Utf8::default();
            let mut out: String = bytes.chunks(1).map(|part| utf8.push(part)).collect();
            out.push_str(&utf8.finish());
            prop_assert_eq!(out, String::from_utf8_lossy(&bytes).into_owned());
        }
    }
}
