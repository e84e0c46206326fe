//! The usage of a response that is passed through: as the target reports it, or as its texts suggest.

use formwork_core::Usage;
use serde_json::Value;

use crate::document::Extent;

/// The maximum number of bytes that are kept of a member `usage`.
const MAX_USAGE: usize = 8 << 10;

/// The longest name of a member or a model that means anything here.
const MAX_NAME: usize = 64;

/// Reads a body as it passes, in any chunking: a document, lines or Server-Sent Events. Nothing of it is kept but the counts.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    reported: Counts,
    /// The bytes of the model's texts and calls, and the number of pieces they came in.
    bytes: u64,
    pieces: u64,
    /// The same of members `delta`, which later events of the Responses API repeat.
    deltas: (u64, u64),
    depth: u32,
    /// Whether the object or list at each depth is a list.
    lists: u64,
    /// The name of the member whose value comes next.
    name: Name,
    /// The last string, which is a name if a colon follows.
    word: Name,
    text: Text,
    /// The depth of the arguments of a call, while they are read.
    arguments: Option<u32>,
    /// The member `usage`, while it is read, and its depth.
    usage: Option<(Vec<u8>, u32)>,
    /// The digits of a count of Ollama's.
    digits: Vec<u8>,
    answered: Answered,
}

/// The model that answered and its reason to stop, as the target names them.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Answered {
    pub(crate) model: Option<String>,
    pub(crate) finish: Option<String>,
}

/// The state of the string that is read.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Text {
    #[default]
    None,
    Inside,
    Escaped,
}

/// The beginning of a string.
#[derive(Debug, Clone, Copy)]
struct Name {
    bytes: [u8; MAX_NAME],
    length: usize,
}

impl Default for Name {
    fn default() -> Self {
        Self { bytes: [0; MAX_NAME], length: 0 }
    }
}

impl Name {
    fn push(&mut self, part: &[u8]) {
        let free = self.bytes.get_mut(self.length..).unwrap_or_default();
        let kept = part.len().min(free.len());
        if let (Some(free), Some(part)) = (free.get_mut(..kept), part.get(..kept)) {
            free.copy_from_slice(part);
        }
        self.length = (self.length + part.len()).min(MAX_NAME + 1);
    }

    fn get(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// Returns whether the member is what a model writes.
    fn is_text(&self) -> bool {
        matches!(
            self.get(),
            b"content"
                | b"text"
                | b"arguments"
                | b"partial_json"
                | b"thinking"
                | b"reasoning"
                | b"reasoning_content"
                | b"refusal"
                | b"response"
                | b"delta"
        )
    }
}

/// The counts that a target reported; of several, the highest.
#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    input: Option<u64>,
    output: Option<u64>,
    cached: u64,
    reasoning: u64,
}

impl Counts {
    /// Adds a member `usage`.
    fn add(&mut self, usage: &Value) {
        // Not by JSON Pointer: each one is unescaped into new texts, which takes longer than the whole body.
        let of = |value: &Value, name: &str| value.get(name)?.as_u64();
        let first = |names: &[&str]| names.iter().find_map(|name| of(usage, name));
        let detail =
            |members: &[&str], name: &str| members.iter().find_map(|member| of(usage.get(member)?, name));
        // Anthropic counts tokens that are read from or written to its cache beside the others.
        let beside = first(&["cache_read_input_tokens"]);
        let written = first(&["cache_creation_input_tokens"]);
        let input = first(&["prompt_tokens", "input_tokens"]);
        let input =
            input.map(|input| input.saturating_add(beside.unwrap_or(0)).saturating_add(written.unwrap_or(0)));
        self.input = self.input.max(input);
        self.output = self.output.max(first(&["completion_tokens", "output_tokens"]));
        let cached = detail(&["prompt_tokens_details", "input_tokens_details"], "cached_tokens")
            .or_else(|| first(&["prompt_cache_hit_tokens"]));
        let reasoning = detail(&["completion_tokens_details", "output_tokens_details"], "reasoning_tokens");
        self.cached = self.cached.max(cached.or(beside).unwrap_or(0));
        self.reasoning = self.reasoning.max(reasoning.unwrap_or(0));
    }
}

impl Meter {
    pub(crate) fn see(&mut self, mut bytes: &[u8]) {
        while let Some(first) = bytes.first() {
            let used = match self.text {
                Text::Inside => self.string(bytes),
                Text::Escaped => {
                    self.text = Text::Inside;
                    1
                }
                Text::None => {
                    self.mark(*first);
                    1
                }
            };
            let (seen, rest) = bytes.split_at(used);
            if let Some((kept, _)) = &mut self.usage
                && kept.len() < MAX_USAGE
            {
                kept.extend_from_slice(seen);
            }
            if matches!(first, b'}') {
                self.end_usage();
            }
            bytes = rest;
        }
    }

    /// Reads the beginning of the rest of a string. Returns the number of bytes that were read.
    fn string(&mut self, bytes: &[u8]) -> usize {
        let end = bytes.iter().position(|byte| matches!(byte, b'"' | b'\\' | b'\n')).unwrap_or(bytes.len());
        let (part, rest) = bytes.split_at(end);
        self.word.push(part);
        self.count(end as u64, 0);
        match rest.first() {
            None => return end,
            Some(b'\\') => {
                self.count(1, 0);
                self.text = Text::Escaped;
            }
            // No string of JSON has a line break: this was text between the documents.
            Some(b'\n') => (self.text, self.depth, self.name) = (Text::None, 0, Name::default()),
            Some(_) => {
                self.text = Text::None;
                self.note();
            }
        }
        end + 1
    }

    /// Notes the string that ended, if it is the model's name or its reason to stop.
    fn note(&mut self) {
        let place = match self.name.get() {
            _ if self.arguments.is_some() => return,
            b"model" if self.answered.model.is_none() => &mut self.answered.model,
            b"finish_reason" | b"stop_reason" | b"done_reason" => &mut self.answered.finish,
            _ => return,
        };
        // A longer word is empty here.
        if let Some(word) = std::str::from_utf8(self.word.get()).ok().filter(|word| !word.is_empty()) {
            *place = Some(word.to_owned());
        }
    }

    /// Returns the model and its reason to stop, as far as the body has named them.
    pub(crate) fn answered(&mut self) -> Answered {
        std::mem::take(&mut self.answered)
    }

    /// Reads a byte outside of strings.
    fn mark(&mut self, byte: u8) {
        if byte.is_ascii_digit() && matches!(self.name.get(), b"prompt_eval_count" | b"eval_count") {
            self.digits.push(byte);
            return;
        }
        self.end_digits();
        match byte {
            b'"' => {
                (self.text, self.word) = (Text::Inside, Name::default());
                self.count(0, 1);
            }
            b':' => self.name = self.word,
            b'{' | b'[' => {
                self.depth = self.depth.saturating_add(1);
                let bit = 1_u64.checked_shl(self.depth).unwrap_or(0);
                if byte == b'[' {
                    self.lists |= bit;
                    return;
                }
                self.lists &= !bit;
                if self.arguments.is_none() && matches!(self.name.get(), b"arguments" | b"input") {
                    self.arguments = Some(self.depth);
                }
                if self.arguments.is_none() && self.usage.is_none() && self.name.get() == b"usage" {
                    self.usage = Some((Vec::new(), self.depth));
                }
                self.name = Name::default();
            }
            b'}' | b']' => {
                if self.arguments == Some(self.depth) {
                    self.arguments = None;
                }
                self.depth = self.depth.saturating_sub(1);
                (self.name, self.word) = (Name::default(), Name::default());
            }
            b',' if self.lists & 1_u64.checked_shl(self.depth).unwrap_or(0) == 0 => {
                self.name = Name::default()
            }
            _ => {}
        }
        if self.arguments.is_some() {
            self.bytes += 1;
        }
    }

    /// Counts a part of a string, if a model wrote it.
    fn count(&mut self, bytes: u64, pieces: u64) {
        if self.arguments.is_some() {
            self.bytes += bytes;
        } else if self.name.get() == b"delta" {
            self.deltas = (self.deltas.0 + bytes, self.deltas.1 + pieces);
        } else if self.name.is_text() {
            (self.bytes, self.pieces) = (self.bytes + bytes, self.pieces + pieces);
        }
    }

    /// Ends the member `usage`, if this bracket is its own.
    fn end_usage(&mut self) {
        let depth = self.depth + 1;
        if let Some((kept, _)) = self.usage.take_if(|(_, at)| *at >= depth)
            && let Ok(usage) = serde_json::from_slice(&kept)
        {
            self.reported.add(&usage);
        }
    }

    fn end_digits(&mut self) {
        if self.digits.is_empty() {
            return;
        }
        let digits = std::mem::take(&mut self.digits);
        let count = std::str::from_utf8(&digits).ok().and_then(|digits| digits.parse().ok());
        let reported = &mut self.reported;
        let place = if self.name.get() == b"eval_count" { &mut reported.output } else { &mut reported.input };
        *place = (*place).max(count);
    }

    /// Returns the usage that the body reports, or an estimate from its texts and the extent of the prompt. A body that was cut
    /// has an estimate where that is higher than what was reported so far.
    pub(crate) fn usage(&mut self, prompt: Extent, is_whole: bool) -> Usage {
        self.end_digits();
        let Counts { input, output, cached, reasoning } = self.reported;
        let (bytes, pieces) = if self.deltas.0 > 0 { self.deltas } else { (self.bytes, self.pieces) };
        let estimate = bytes.div_ceil(3).max(pieces.min(bytes));
        let output = output.filter(|output| (is_whole && *output > 0) || *output >= estimate);
        let input = input.filter(|input| *input > 0);
        Usage::new(input.unwrap_or_else(|| prompt.estimate()), output.unwrap_or(estimate))
            .with_cached(cached)
            .with_reasoning(reasoning)
            .with_estimated(input.is_none() || (output.is_none() && (estimate > 0 || !is_whole)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metered(body: &str, size: usize, is_whole: bool) -> Usage {
        let mut meter = Meter::default();
        body.as_bytes().chunks(size).for_each(|chunk| meter.see(chunk));
        meter.usage(Extent::default(), is_whole)
    }

    #[test]
    fn the_usage_of_every_protocol_is_found_in_any_chunking() {
        for (body, expected) in [
            (
                r#"{"choices":[{"message":{"content":"{\"usage\":{\"prompt_tokens\":9}}"}}],"usage":{"prompt_tokens": 12,"completion_tokens":3,
                "prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":2}}}"#,
                Usage::new(12, 3).with_cached(4).with_reasoning(2),
            ),
            (
                "data: {\"usage\":{\"input_tokens\":9,\"output_tokens\":1,\"cache_read_input_tokens\":100,\"cache_creation_input_tokens\":\
                10}}\n\n: a \" note\n\ndata: {\"usage\":{\"output_tokens\":7}}\n\ndata: [DONE]\n\n",
                Usage::new(119, 7).with_cached(100),
            ),
            (
                "{\"done\":false}\n{\"done\":true,\"prompt_eval_count\":5,\"eval_count\":6}\n",
                Usage::new(5, 6),
            ),
            (
                r#"{"content":[{"type":"tool_use","input":{"usage":{"input_tokens":70}}}],"usage":{"input_tokens":7,"output_tokens":2}}"#,
                Usage::new(7, 2),
            ),
            (
                r#"{"response":{"text":{"format":{}},"usage":{"input_tokens":8,"output_tokens":2,"input_tokens_details":{"cached_tokens":6}}}}"#,
                Usage::new(8, 2).with_cached(6),
            ),
        ] {
            for size in [1, 2, 5, 1_000] {
                assert_eq!(metered(body, size, true), expected, "{size}: {body}");
            }
        }
    }

    #[test]
    fn what_is_not_reported_is_estimated_from_the_texts_alone() {
        // Each has 30 bytes of text: ten tokens of three bytes.
        let text = "a".repeat(30);
        let deltas: String = (0..10).map(|_| "data: {\"id\":\"chatcmpl-1234567890\",\"choices\":[{\"delta\":{\"content\":\"aaa\"}}]}\n\n").collect();
        for (body, output) in [
            (
                format!(
                    r#"{{"id":"x","choices":[{{"message":{{"role":"assistant","content":"{text}"}}}}]}}"#
                ),
                10,
            ),
            (
                format!(
                    r#"{{"content":[{{"type":"text","text":"{text}"}}],"usage":{{"input_tokens":0,"output_tokens":0}}}}"#
                ),
                10,
            ),
            (format!("{{\"message\":{{\"content\":\"{text}\"}},\"done\":true}}\n"), 10),
            (deltas, 10),
            (
                format!(
                    "data: {{\"type\":\"response.output_text.delta\",\"delta\":\"{text}\"}}\n\ndata: {{\"text\":\"{text}\"}}\n\n"
                ),
                10,
            ),
            (
                r#"{"message":{"tool_calls":[{"function":{"name":"find","arguments":{"city":"Paris"}}}]}}"#
                    .to_owned(),
                5,
            ),
        ] {
            for size in [1, 7, 1_000] {
                assert_eq!(metered(&body, size, true), Usage::new(0, output).with_estimated(true), "{body}");
            }
        }
        // The first event of Anthropic's streams reports one token.
        let cut = format!(
            "data: {{\"usage\":{{\"input_tokens\":9,\"output_tokens\":1}}}}\n\ndata: {{\"delta\":{{\"text\":\"{text}\"}}}}\n\n"
        );
        assert_eq!(metered(&cut, 3, false), Usage::new(9, 10).with_estimated(true));
        assert_eq!(metered("", 1, false), Usage::new(0, 0).with_estimated(true));
    }
}
