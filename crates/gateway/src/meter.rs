//! The usage in a response that is passed through, read from it as it passes.

use formwork_core::Usage;
use serde_json::Value;

/// The number of bytes that are kept of both ends of a body, because the first or the last event contains the usage.
const HEAD: usize = 8 << 10;
const TAIL: usize = 32 << 10;

/// Sees a body pass.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    head: Vec<u8>,
    tail: Vec<u8>,
    length: usize,
}

impl Meter {
    pub(crate) fn see(&mut self, bytes: &[u8]) {
        self.length += bytes.len();
        let room = HEAD.saturating_sub(self.head.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.head.extend_from_slice(first);
        self.tail.extend_from_slice(rest);
        if self.tail.len() > 2 * TAIL {
            self.tail.drain(..self.tail.len() - TAIL);
        }
    }

    /// Returns the usage that the body says, or a guess from its length and that of the request.
    pub(crate) fn usage(&self, request_bytes: usize) -> Usage {
        let mut seen = self.head.clone();
        seen.extend_from_slice(&self.tail);
        let text = String::from_utf8_lossy(&seen);
        let most = |names: &[&str]| names.iter().filter_map(|name| largest(&text, name)).max();
        let input = most(&["prompt_tokens", "input_tokens", "prompt_eval_count"]);
        let output = most(&["completion_tokens", "output_tokens", "eval_count"]);
        match (input, output) {
            (None, None) => Usage::new(request_bytes.div_ceil(4) as u64, self.length.div_ceil(4) as u64)
                .with_estimated(true),
            (input, output) => Usage::new(input.unwrap_or(0), output.unwrap_or(0)),
        }
    }
}

/// Returns the largest number that a member of this name has: streams repeat the usage as it grows.
fn largest(text: &str, name: &str) -> Option<u64> {
    let quoted = format!("\"{name}\"");
    let rests = text.match_indices(&quoted).map(|(at, _)| &text[at + quoted.len()..]);
    let numbers = rests.filter_map(|rest| {
        let rest = rest.trim_start().strip_prefix(':')?;
        serde_json::Deserializer::from_str(rest).into_iter::<Value>().next()?.ok()?.as_u64()
    });
    numbers.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usage_of_every_protocol_is_found_in_any_chunking() {
        for (body, input, output) in [
            (r#"{"choices":[],"usage":{"prompt_tokens": 12,"completion_tokens":3}}"#, 12, 3),
            (
                "data: {\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}\n\ndata: {\"usage\":{\"output_tokens\":7}}\n\n",
                9,
                7,
            ),
            ("{\"done\":false}\n{\"done\":true,\"prompt_eval_count\":5,\"eval_count\":6}\n", 5, 6),
        ] {
            for size in [1, 5, 1_000] {
                let mut meter = Meter::default();
                body.as_bytes().chunks(size).for_each(|chunk| meter.see(chunk));
                assert_eq!(meter.usage(0), Usage::new(input, output));
                let mut late = Meter::default();
                late.see(&vec![b' '; 100_000]);
                body.as_bytes().chunks(size).for_each(|chunk| late.see(chunk));
                late.see(&vec![b' '; 1_000]);
                assert_eq!(late.usage(0), Usage::new(input, output));
            }
        }
        let mut meter = Meter::default();
        meter.see(b"12345678");
        assert_eq!(meter.usage(4), Usage::new(1, 2).with_estimated(true));
    }
}
