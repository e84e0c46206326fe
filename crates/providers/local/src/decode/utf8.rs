/// Converts the bytes of tokens to text, in whole characters.
#[derive(Debug, Default)]
pub(crate) struct Utf8 {
    /// The bytes of an incomplete character.
    pending: Vec<u8>,
    /// The number of bytes of text so far.
    emitted: usize,
}

impl Utf8 {
    /// Returns the text that these bytes complete. Invalid bytes are replaced by U+FFFD.
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

    /// Returns the text at the end of the answer: an incomplete character becomes U+FFFD.
    pub(crate) fn finish(&mut self) -> String {
        if self.pending.is_empty() {
            return String::new();
        }
        self.pending.clear();
        self.emitted += char::REPLACEMENT_CHARACTER.len_utf8();
        char::REPLACEMENT_CHARACTER.to_string()
    }

    /// Returns the number of bytes of text so far.
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
