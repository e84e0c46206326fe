//! The usage of a response that is passed through: as the target reports it, or as its texts suggest.

use formwork_core::Usage;
use memchr::memchr3;
use serde_json::Value;

use crate::document::Extent;

/// The longest name of a member, a model or a number that means anything here.
const MAX_WORD: usize = 64;

/// The number of bytes that are kept of an error.
const MAX_ERROR: usize = 64 << 10;

/// Reads a body as it passes, in any chunking: a document, lines or Server-Sent Events. Nothing of it is kept but the counts
/// and an error.
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
    /// The member whose value comes next.
    name: Name,
    /// The last string, which is a name if a colon follows.
    last: Name,
    /// The beginning of a string that came in several parts, or of a number.
    word: Word,
    inside: Inside,
    /// The depth of the arguments of a call, while they are read.
    arguments: Option<u32>,
    /// The member `usage`, while it is read.
    usage: Option<Box<Reading>>,
    answered: Answered,
    /// The member `error` of a document, whether it is being read, and whether its document came to its end.
    error: Vec<u8>,
    is_error: bool,
    has_error: bool,
}

/// The model that answered and its reason to stop, as the target names them.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Answered {
    pub(crate) model: Option<String>,
    pub(crate) finish: Option<String>,
}

/// A member `usage` that is being read.
#[derive(Debug, Default)]
struct Reading {
    depth: u32,
    report: Report,
    /// The item of Anthropic's `iterations` that is being read, and whether it is a compaction of the dialogue.
    iteration: Report,
    is_compaction: bool,
    /// The compactions, which are no part of the other counts.
    compacted: Report,
}

/// The value that is being read.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Inside {
    #[default]
    None,
    Text,
    Escape,
    Number,
}

/// The beginning of a string or of a number.
#[derive(Debug, Clone, Copy)]
struct Word {
    bytes: [u8; MAX_WORD],
    length: usize,
}

impl Default for Word {
    fn default() -> Self {
        Self { bytes: [0; MAX_WORD], length: 0 }
    }
}

impl Word {
    fn push(&mut self, part: &[u8]) {
        let Some(free) = self.bytes.get_mut(self.length..) else { return };
        let kept = part.len().min(free.len());
        if let (Some(free), Some(part)) = (free.get_mut(..kept), part.get(..kept)) {
            free.copy_from_slice(part);
        }
        self.length = (self.length + part.len()).min(MAX_WORD + 1);
    }

    /// Adds an escaped letter. A word with another escape than that of a slash means nothing here.
    fn escaped(&mut self, letter: u8) {
        match letter {
            b'/' => self.push(b"/"),
            _ => self.length = MAX_WORD + 1,
        }
    }

    /// Returns the word; nothing if it is too long.
    fn get(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// Returns the place of the first byte that ends a part of a text.
fn mark_in(bytes: &[u8]) -> Option<usize> {
    /// Most parts are shorter; the search for long ones takes longer to begin.
    const SHORT: usize = 16;

    let (first, others) = bytes.split_at(bytes.len().min(SHORT));
    let is_mark = |byte: &u8| matches!(byte, b'"' | b'\\' | b'\n');
    let far = || memchr3(b'"', b'\\', b'\n', others).map(|at| at + SHORT);
    first.iter().position(is_mark).or_else(far)
}

/// The names of members that mean anything here.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Name {
    #[default]
    Other,
    /// A text of the model.
    Text,
    Delta,
    /// The arguments of a call: as a text, or as an object.
    Arguments,
    Input,
    Model,
    Finish,
    /// The reason to stop of Anthropic and Ollama. vLLM tells the client's text at which it stopped, beside the reason.
    Stop,
    Error,
    Usage,
    Type,
    /// A count of tokens.
    Count(Count),
}

/// The counts of tokens, as servers name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Count {
    /// The input without [`Beside`](Self::Beside) and [`Written`](Self::Written).
    Input,
    /// All of the input.
    Prompt,
    Output,
    /// The input and the output.
    Total,
    /// Tokens that are part of the input.
    Cached,
    /// Tokens that are read from a cache, and not part of the input.
    Beside,
    /// Tokens that are written to a cache, and not part of the input.
    Written,
    Reasoning,
    /// The tokens that are written to a cache for an hour, which are part of [`Written`](Self::Written).
    Hour,
    /// Tokens that are written to a cache, and part of the input.
    Within,
    /// The cost in US dollars, which is kept in millionths.
    Dollars,
    /// The cost at the vendor, which OpenRouter does not charge, in US dollars.
    Upstream,
    /// Whether the client's own key at the vendor pays for that, as 1.
    OwnKey,
    /// Ollama's, outside of a member `usage`.
    LineInput,
    LineOutput,
}

impl Name {
    fn of(word: &[u8]) -> Self {
        match word {
            b"content" | b"text" | b"partial_json" | b"thinking" | b"reasoning" | b"reasoning_content"
            | b"refusal" | b"response" => Self::Text,
            b"delta" => Self::Delta,
            b"arguments" => Self::Arguments,
            b"input" => Self::Input,
            b"model" => Self::Model,
            b"finish_reason" => Self::Finish,
            b"stop_reason" | b"done_reason" => Self::Stop,
            b"error" => Self::Error,
            b"usage" => Self::Usage,
            b"type" => Self::Type,
            b"input_tokens" => Self::Count(Count::Input),
            b"prompt_tokens" => Self::Count(Count::Prompt),
            b"completion_tokens" | b"output_tokens" => Self::Count(Count::Output),
            b"cached_tokens" | b"prompt_cache_hit_tokens" => Self::Count(Count::Cached),
            b"cache_read_input_tokens" => Self::Count(Count::Beside),
            b"cache_creation_input_tokens" => Self::Count(Count::Written),
            b"ephemeral_1h_input_tokens" => Self::Count(Count::Hour),
            b"cache_write_tokens" => Self::Count(Count::Within),
            b"cost" => Self::Count(Count::Dollars),
            b"upstream_inference_cost" => Self::Count(Count::Upstream),
            b"is_byok" => Self::Count(Count::OwnKey),
            b"total_tokens" => Self::Count(Count::Total),
            b"reasoning_tokens" | b"thinking_tokens" => Self::Count(Count::Reasoning),
            b"prompt_eval_count" => Self::Count(Count::LineInput),
            b"eval_count" => Self::Count(Count::LineOutput),
            _ => Self::Other,
        }
    }
}

/// The counts of one member `usage`, in the order of [`Count`].
type Report = [Option<u64>; 13];

/// Adds a count of a member `usage` itself, or of one of its objects of details.
fn add(report: &mut Report, count: Count, number: u64, is_detail: bool) {
    let is_there = match count {
        Count::Cached => true,
        Count::Reasoning | Count::Hour | Count::Within | Count::Upstream => is_detail,
        _ => !is_detail,
    };
    // Ollama's counts have no place.
    if let Some(place) = report.get_mut(count as usize).filter(|_| is_there) {
        // Some servers name a count in two ways.
        *place = (*place).max(Some(number));
    }
}

/// Returns the sum of each count.
fn sum(mut report: Report, more: Report) -> Report {
    for (count, more) in report.iter_mut().zip(more) {
        *count = more.map_or(*count, |more| Some(count.unwrap_or(0).saturating_add(more)));
    }
    report
}

/// The counts that a target reported; of several, the highest.
#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    input: Option<u64>,
    output: Option<u64>,
    cached: u64,
    written: u64,
    hour: u64,
    reasoning: u64,
    /// In millionths of a US dollar.
    cost: Option<u64>,
    has_total: bool,
    /// Whether it was Ollama's report at the end.
    is_last: bool,
}

impl Counts {
    fn add(&mut self, report: Report) {
        let [
            input,
            prompt,
            output,
            total,
            cached,
            beside,
            written,
            reasoning,
            hour,
            within,
            cost,
            upstream,
            own_key,
        ] = report;
        // Anthropic counts tokens that are read from or written to its cache beside the others; LiteLLM's `prompt_tokens` has them.
        let others = beside.unwrap_or(0).saturating_add(written.unwrap_or(0));
        let input = prompt.max(input.map(|input| input.saturating_add(others)));
        let reasoning = reasoning.unwrap_or(0);
        // xAI counts reasoning beside the output; the total reveals it.
        let all = output.map(|output| output.saturating_add(reasoning));
        let is_beside = total.is_some() && total == all.and_then(|all| all.checked_add(input.unwrap_or(0)));
        self.input = self.input.max(input);
        self.output = self.output.max(if is_beside { all } else { output });
        self.cached = self.cached.max(cached.or(beside).unwrap_or(0));
        self.written = self.written.max(written.or(within).unwrap_or(0));
        self.hour = self.hour.max(hour.unwrap_or(0));
        self.reasoning = self.reasoning.max(reasoning);
        let both = || cost?.checked_add(upstream?);
        self.cost = self.cost.max(if own_key.is_some() { both() } else { cost });
        self.has_total |= total.is_some();
    }
}

impl Meter {
    pub(crate) fn see(&mut self, mut bytes: &[u8]) {
        while let Some((first, rest)) = bytes.split_first() {
            let before = bytes;
            bytes = match self.inside {
                Inside::None => {
                    self.mark(*first);
                    rest
                }
                Inside::Text => self.text(bytes),
                Inside::Escape => {
                    self.inside = Inside::Text;
                    if *first == b'\n' {
                        // No escape has a line break: it ends the text.
                        bytes
                    } else {
                        self.word.escaped(*first);
                        rest
                    }
                }
                Inside::Number => self.number(bytes),
            };
            if self.is_error {
                self.keep_error(before.get(..before.len() - bytes.len()).unwrap_or_default());
            }
        }
    }

    /// Keeps a part of an error.
    fn keep_error(&mut self, part: &[u8]) {
        let free = MAX_ERROR.saturating_sub(self.error.len());
        self.error.extend_from_slice(part.get(..free).unwrap_or(part));
        if self.inside == Inside::None && self.depth <= 1 {
            self.is_error = false;
            if self.error == b"\"\"" || self.error == b"{}" {
                self.error.clear();
            }
        }
    }

    /// Reads a part of a text. Returns the bytes after it.
    fn text<'b>(&mut self, mut bytes: &'b [u8]) -> &'b [u8] {
        let mut counted = 0;
        let rest = loop {
            let end = mark_in(bytes).unwrap_or(bytes.len());
            let (part, rest) = bytes.split_at(end);
            counted += part.len() as u64;
            let Some((last, rest)) = rest.split_first() else {
                self.word.push(part);
                break rest;
            };
            match last {
                b'\\' => {
                    self.word.push(part);
                    counted += 1;
                    let Some((letter, after)) = rest.split_first().filter(|(letter, _)| **letter != b'\n')
                    else {
                        self.inside = Inside::Escape;
                        break rest;
                    };
                    self.word.escaped(*letter);
                    bytes = after;
                    continue;
                }
                b'\n' => {
                    self.count(counted, 0);
                    // No string of JSON has a line break: this was text between the documents.
                    (self.inside, self.depth, self.name) = (Inside::None, 0, Name::Other);
                    return rest;
                }
                _ if self.word.length == 0 => self.note(part),
                _ => {
                    self.word.push(part);
                    let word = self.word;
                    self.note(word.get());
                }
            }
            break rest;
        };
        self.count(counted, 0);
        rest
    }

    /// Reads a part of a count of tokens. Returns the bytes after it.
    fn number<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
        let end = bytes.iter().position(|byte| !is_part(byte)).unwrap_or(bytes.len());
        let (part, rest) = bytes.split_at(end);
        self.word.push(part);
        if !rest.is_empty() {
            self.end_number();
        }
        rest
    }

    /// Notes the string that ended: the name of a member, or the model's name or its reason to stop.
    fn note(&mut self, word: &[u8]) {
        (self.inside, self.last) = (Inside::None, Name::of(word));
        let place = match self.name {
            _ if self.arguments.is_some() => return,
            Name::Model if self.answered.model.is_none() => &mut self.answered.model,
            Name::Finish => &mut self.answered.finish,
            Name::Stop if self.answered.finish.is_none() => &mut self.answered.finish,
            Name::Type if word == b"compaction" => {
                let depth = self.depth;
                let own = self.usage.iter_mut().filter(|usage| depth == usage.depth + 2);
                return own.for_each(|usage| usage.is_compaction = true);
            }
            _ => return,
        };
        if let Some(word) = std::str::from_utf8(word).ok().filter(|word| (1..=MAX_WORD).contains(&word.len()))
        {
            *place = Some(word.to_owned());
        }
    }

    /// Notes the count that ended.
    fn end_number(&mut self) {
        if self.inside != Inside::Number {
            return;
        }
        self.inside = Inside::None;
        let Name::Count(count) = self.name else { return };
        let digits = std::str::from_utf8(self.word.get()).unwrap_or_default();
        let number = match count {
            Count::Dollars | Count::Upstream => Usage::default().with_dollars(digits.parse().ok()).micro_usd,
            _ => digits.parse().ok(),
        };
        let Some(number) = number else { return };
        self.counted(count, number);
    }

    /// Notes a count.
    fn counted(&mut self, count: Count, number: u64) {
        match (count, &mut self.usage) {
            (Count::LineInput, _) => self.reported.input = self.reported.input.max(Some(number)),
            (Count::LineOutput, _) => {
                (self.reported.output, self.reported.is_last) =
                    (self.reported.output.max(Some(number)), true);
            }
            // A line break in a text ends all documents.
            (_, Some(usage)) => match self.depth.checked_sub(usage.depth) {
                Some(depth @ 0..=1) => add(&mut usage.report, count, number, depth > 0),
                Some(depth @ 2..=3) => add(&mut usage.iteration, count, number, depth > 2),
                _ => {}
            },
            _ => {}
        }
    }

    /// Returns whether the body has named the reason to stop, or has Ollama's report at its end; or a total, as the last event of a
    /// Responses stream has. Other servers tell the total so far with every event.
    pub(crate) const fn has_end(&self, is_responses: bool) -> bool {
        self.answered.finish.is_some() || self.reported.is_last || is_responses && self.reported.has_total
    }

    /// Returns the reason to stop, if the body has named it.
    pub(crate) fn finish(&self) -> Option<&str> {
        self.answered.finish.as_deref()
    }

    /// Returns whether a document that came to its end has a member `error` with a text or an object.
    pub(crate) const fn has_error(&self) -> bool {
        self.has_error
    }

    /// Returns the first of these members; as a text if it is too long.
    pub(crate) fn error(&self) -> Option<Value> {
        let text = || String::from_utf8_lossy(&self.error);
        self.has_error.then(|| serde_json::from_slice(&self.error).unwrap_or_else(|_| text().into()))
    }

    /// Returns whether no document is open.
    pub(crate) const fn is_between(&self) -> bool {
        self.depth == 0
    }

    /// Returns whether the body has neither texts nor counts so far.
    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes == 0
            && self.deltas.0 == 0
            && self.reported.input.is_none()
            && self.reported.output.is_none()
    }

    /// Returns the model and its reason to stop, as far as the body has named them.
    pub(crate) fn answered(&mut self) -> Answered {
        std::mem::take(&mut self.answered)
    }

    /// Reads a byte between strings and counts.
    fn mark(&mut self, byte: u8) {
        if self.name == Name::Error && self.depth == 1 && matches!(byte, b'"' | b'{') && self.error.is_empty()
        {
            self.is_error = true;
        }
        match byte {
            b'"' => {
                (self.inside, self.word.length) = (Inside::Text, 0);
                self.count(0, 1);
            }
            b':' => self.name = self.last,
            b'{' | b'[' => {
                self.depth = self.depth.saturating_add(1);
                let bit = 1_u64.checked_shl(self.depth).unwrap_or(0);
                if byte == b'[' {
                    self.lists |= bit;
                    return;
                }
                self.lists &= !bit;
                if self.arguments.is_none() {
                    match self.name {
                        Name::Arguments | Name::Input => self.arguments = Some(self.depth),
                        Name::Usage if self.usage.is_none() => {
                            self.usage = Some(Box::new(Reading { depth: self.depth, ..Reading::default() }));
                        }
                        _ => {}
                    }
                }
                self.name = Name::Other;
            }
            b'}' | b']' => {
                if self.arguments == Some(self.depth) {
                    self.arguments = None;
                }
                if let Some(usage) = self.usage.take_if(|usage| usage.depth >= self.depth) {
                    self.reported.add(sum(usage.report, usage.compacted));
                } else if let Some(usage) = &mut self.usage
                    && self.depth == usage.depth + 2
                {
                    let iteration = std::mem::take(&mut usage.iteration);
                    if std::mem::take(&mut usage.is_compaction) {
                        usage.compacted = sum(usage.compacted, iteration);
                    }
                }
                self.depth = self.depth.saturating_sub(1);
                self.has_error |= self.depth == 0 && !self.error.is_empty();
                (self.name, self.last) = (Name::Other, Name::Other);
            }
            b',' if self.lists & 1_u64.checked_shl(self.depth).unwrap_or(0) == 0 => self.name = Name::Other,
            b'0'..=b'9' | b'-' if self.arguments.is_none() && matches!(self.name, Name::Count(_)) => {
                (self.inside, self.word.length) = (Inside::Number, 0);
                self.word.push(&[byte]);
            }
            b't' if self.name == Name::Count(Count::OwnKey) => self.counted(Count::OwnKey, 1),
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
            return;
        }
        match self.name {
            Name::Delta => self.deltas = (self.deltas.0 + bytes, self.deltas.1 + pieces),
            Name::Text | Name::Arguments => {
                (self.bytes, self.pieces) = (self.bytes + bytes, self.pieces + pieces);
            }
            _ => {}
        }
    }

    /// Returns the usage that the body reports, or an estimate from its texts and the extent of the prompt. A body that was cut
    /// has an estimate where that is higher than what was reported so far.
    pub(crate) fn usage(&mut self, prompt: Extent, is_whole: bool) -> Usage {
        self.end_number();
        let Counts { input, output, cached, written, hour, reasoning, cost, .. } = self.reported;
        let hour = hour.min(written);
        let (bytes, pieces) = if self.deltas.0 > 0 { self.deltas } else { (self.bytes, self.pieces) };
        let estimate = bytes.div_ceil(3).max(pieces.min(bytes));
        let output = output.filter(|output| (is_whole && *output > 0) || *output >= estimate);
        let input = input.filter(|input| *input > 0);
        let estimated = input.is_none() || (output.is_none() && (estimate > 0 || !is_whole));
        let mut usage = Usage::new(input.unwrap_or_else(|| prompt.estimate()), output.unwrap_or(estimate))
            .with_cached(cached)
            .with_written(written - hour, hour)
            .with_reasoning(reasoning)
            .with_estimated(estimated);
        // The cost of a part of an answer is not that of the answer.
        usage.micro_usd = cost.filter(|_| !estimated);
        usage
    }
}

/// Adds the tokens of other calls to the counts of a response or an event, where it has counts. Returns whether it changed.
pub(crate) fn add_counts(document: &mut Value, others: Usage) -> bool {
    let Some(members) = document.as_object_mut() else { return false };
    let counts_of = |count: Count, tokens: u64| {
        let has = |name: &String| Name::of(name.as_bytes()) == Name::Count(count);
        if members.keys().any(has) { tokens } else { 0 }
    };
    let beside = counts_of(Count::Beside, others.cached_tokens)
        .saturating_add(counts_of(Count::Written, others.written_tokens));
    // xAI counts reasoning beside the output.
    let number = |value: Option<&Value>| value.and_then(Value::as_u64).unwrap_or(0);
    let counts = ["prompt_tokens", "completion_tokens", "total_tokens"];
    let [prompt, output, total] = counts.map(|name| number(members.get(name)));
    let reasoned =
        number(members.get("completion_tokens_details").and_then(|all| all.get("reasoning_tokens")));
    // Servers name a cost only beside the counts.
    let has_counts = members.keys().any(|name| Name::of(name.as_bytes()) == Name::Count(Count::Output));
    let cost = others.micro_usd.filter(|_| has_counts);
    let is_apart = reasoned > 0 && total == prompt.saturating_add(output).saturating_add(reasoned);
    let apart = if is_apart { others.reasoning_tokens } else { 0 };
    let mut is_changed = false;
    for (name, value) in members {
        let more = match Name::of(name.as_bytes()) {
            Name::Count(Count::Input) => others.input_tokens.saturating_sub(beside),
            Name::Count(Count::Prompt | Count::LineInput) => others.input_tokens,
            Name::Count(Count::Output | Count::LineOutput) => others.output_tokens.saturating_sub(apart),
            Name::Count(Count::Total) => others.input_tokens.saturating_add(others.output_tokens),
            Name::Count(Count::Cached | Count::Beside) => others.cached_tokens,
            Name::Count(Count::Written | Count::Within) => others.written_tokens,
            Name::Count(Count::Hour) => others.written_hour_tokens,
            Name::Count(Count::Reasoning) => others.reasoning_tokens,
            // Anthropic's, beside that of an hour.
            _ if name == "ephemeral_5m_input_tokens" => {
                others.written_tokens.saturating_sub(others.written_hour_tokens)
            }
            _ => 0,
        };
        if let (Name::Count(Count::Dollars), Some(own), Some(cost)) =
            (Name::of(name.as_bytes()), value.as_f64(), cost)
        {
            *value = (own + cost as f64 / 1e6).into();
            is_changed = true;
        }
        let is_outer = matches!(name.as_str(), "message" | "response" | "usage" | "cache_creation")
            || name.ends_with("_details");
        if let Some(count) = value.as_u64().filter(|_| more > 0) {
            *value = count.saturating_add(more).into();
            is_changed = true;
        } else if is_outer {
            is_changed |= add_counts(value, others);
        }
    }
    is_changed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_error_of_a_document_is_kept_in_any_chunking() {
        let long = format!(r#"{{"message": "{}"}}"#, "x".repeat(MAX_ERROR));
        let cut = &long[..MAX_ERROR];
        for (body, error) in [
            (
                r#"{"id": 1, "error" : {"code": 5, "message": "a \"b\" }{", "of": {"error": 1}}, "choices": []}"#,
                Some(r#"{"code": 5, "message": "a \"b\" }{", "of": {"error": 1}}"#),
            ),
            (
                "data: {\"error\": \"\", \"a\": 1}\n\ndata: {\"error\": {}}\n\ndata: {\"error\":\"full\\n\"}\n\ndata: {\"err",
                Some(r#""full\n""#),
            ),
            (&format!(r#"{{"error": {long}, "a": 2}}"#), Some(json!(cut).to_string().as_str())),
            (r#"{"error": {"code": 5}, "choices": [{"#, None),
            (
                r#"{"error": null, "a": {"error": {"b": 1}}, "content": "{\"error\": \"x\"}", "arguments": {"error": "y"}}"#,
                None,
            ),
            (r#"[{"error": "x"}]"#, None),
        ] {
            let expected = error.map(|error| serde_json::from_str::<Value>(error).unwrap());
            for size in [1, 2, 3, 7, 64, usize::MAX] {
                let mut meter = Meter::default();
                body.as_bytes().chunks(size).for_each(|chunk| meter.see(chunk));
                assert_eq!(
                    (meter.error(), meter.has_error()),
                    (expected.clone(), error.is_some()),
                    "{size}: {body:.200}"
                );
            }
        }
        let mut meter = Meter::default();
        meter.see(br#"{"choices": [{"finish_reason": "stop", "stop_reason": "error"}]}"#);
        assert_eq!(meter.finish(), Some("stop"));
    }

    fn metered(body: &str, size: usize, is_whole: bool) -> Usage {
        let mut meter = Meter::default();
        body.as_bytes().chunks(size).for_each(|chunk| meter.see(chunk));
        meter.usage(Extent::default(), is_whole)
    }

    /// Bodies with reports of usage, and the usage that they report.
    fn reports() -> Vec<(&'static str, Usage)> {
        vec![
            (
                r#"{"choices":[{"message":{"content":"{\"usage\":{\"prompt_tokens\":9}}"}}],"usage":{"prompt_tokens": 12,"completion_tokens":3,
                "prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":2}}}"#,
                Usage::new(12, 3).with_cached(4).with_reasoning(2),
            ),
            (
                "data: {\"usage\":{\"input_tokens\":9,\"output_tokens\":1,\"cache_read_input_tokens\":100,\"cache_creation_input_tokens\":\
                10}}\n\n: a \" note\n\ndata: {\"usage\":{\"output_tokens\":7}}\n\ndata: [DONE]\n\n",
                Usage::new(119, 7).with_cached(100).with_written(10, 0),
            ),
            (
                r#"{"usage":{"input_tokens":9,"output_tokens":7,"cache_creation_input_tokens":10,"cache_creation":{"ephemeral_5m_input_tokens":4,
                "ephemeral_1h_input_tokens":6}}}"#,
                Usage::new(19, 7).with_written(4, 6),
            ),
            // OpenRouter: a part of the input, and the cost, whose parts are in an object of details.
            (
                r#"{"usage":{"prompt_tokens":12,"completion_tokens":3,"cost":1.25e-3,"cost_details":{"cost":7,"upstream_inference_cost":9},
                "prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":5}}}"#,
                Usage::new(12, 3).with_cached(4).with_written(5, 0).with_dollars(Some(0.00125)),
            ),
            (
                r#"{"cost":3,"usage":{"prompt_tokens":12,"completion_tokens":3,"cost":"free","cache_write_tokens":8,"ephemeral_1h_input_tokens":9}}"#,
                Usage::new(12, 3),
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
            (
                r#"{"usage":{"prompt_tokens":12,"completion_tokens":3,"total_tokens":15,"prompt_cache_hit_tokens":5,"prompt_tokens_details":null}}"#,
                Usage::new(12, 3).with_cached(5),
            ),
            // LiteLLM's form for Claude: all of the prompt, and Anthropic's counts of its parts.
            (
                r#"{"usage":{"prompt_tokens":119,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":100},"cache_creation_input_tokens":10,"cache_read_input_tokens":100}}"#,
                Usage::new(119, 7).with_cached(100).with_written(10, 0),
            ),
            // xAI's reasoning beside the output, and Anthropic's, which is a part of it.
            (
                r#"{"usage":{"prompt_tokens":12,"completion_tokens":3,"total_tokens":115,"completion_tokens_details":{"reasoning_tokens":100}}}"#,
                Usage::new(12, 103).with_reasoning(100),
            ),
            (
                r#"{"usage":{"input_tokens":4,"output_tokens":9,"output_tokens_details":{"thinking_tokens":5}}}"#,
                Usage::new(4, 9).with_reasoning(5),
            ),
            // A text between documents ends at its line, also in an escape.
            (": \"C:\\\ndata: {\"usage\":{\"input_tokens\":4,\"output_tokens\":9}}\n\n", Usage::new(4, 9)),
            // The cost at the vendor is beside OpenRouter's if the client's own key pays for it.
            (
                r#"{"usage":{"prompt_tokens":12,"completion_tokens":3,"is_byok":true,"cost":0,"cost_details":{"upstream_inference_cost":0.42}}}"#,
                Usage::new(12, 3).with_dollars(Some(0.42)),
            ),
            (
                r#"{"is_byok":true,"usage":{"prompt_tokens":12,"completion_tokens":3,"cost":0.5,"cost_details":{"upstream_inference_cost":0.42},"is_byok":false}}"#,
                Usage::new(12, 3).with_dollars(Some(0.5)),
            ),
            // Compactions are beside the other counts.
            (
                r#"{"usage":{"iterations":[{"type":"compaction","input_tokens":180,"cache_read_input_tokens":7,"output_tokens":35},{"input_tokens":23,
                "output_tokens":10,"type":"message"},{"output_tokens":1,"cache_creation_input_tokens":4,"cache_creation":{"ephemeral_1h_input_tokens":3},
                "input_tokens":2,"type":"compaction"}],"input_tokens":23,"output_tokens":10,"type":"compaction","cache_read_input_tokens":0,
                "cache_creation_input_tokens":0,"cache_creation":{"ephemeral_1h_input_tokens":0}},"type":"compaction"}"#,
                Usage::new(23 + 187 + 6, 46).with_cached(7).with_written(1, 3),
            ),
            // Neither counts of parts, nor what is no count.
            (
                r#"{"usage":{"input_tokens":5,"output_tokens":2,"iterations":[{"input_tokens":70,"output_tokens":80}],"details":{"input_tokens":90}}}"#,
                Usage::new(5, 2),
            ),
            (
                r#"{"usage":null,"prompt_tokens":70,"x":{"usage":{"prompt_tokens":5,"completion_tokens":2,"input_tokens":-9,"output_tokens":8.5}}}"#,
                Usage::new(5, 2),
            ),
        ]
    }

    #[test]
    fn the_usage_of_every_protocol_is_found_in_any_chunking() {
        for (body, expected) in reports() {
            for size in [1, 2, 5, 1_000] {
                assert_eq!(metered(body, size, true), expected, "{size}: {body}");
            }
        }
    }

    proptest! {
        /// Servers send what they like, such as a line break within a text.
        #[test]
        fn every_sequence_of_pieces_is_read_to_its_end_and_the_same_in_any_chunking(
            pieces in prop::collection::vec(0..PIECES.len(), 0..40), size in 1..9_usize,
        ) {
            let body: String = pieces.into_iter().filter_map(|piece| PIECES.get(piece).copied()).collect();
            prop_assert_eq!(metered(&body, body.len().max(1), true), metered(&body, size, true), "{}", body);
        }
    }

    const PIECES: [&str; 18] = [
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"",
        "\n",
        "\\",
        "7",
        "true",
        "\"usage\":{",
        "\"iterations\":[{",
        "\"type\":\"compaction\"",
        "\"input_tokens\":5",
        "\"output_tokens\":3,",
        "\"is_byok\":true,",
        "\"cost_details\":{\"upstream_inference_cost\":0.5",
    ];

    #[test]
    fn a_model_is_named_in_any_escapes_and_chunking() {
        for (written, expected) in [
            (r"meta-llama/Llama-3", Some("meta-llama/Llama-3")),
            (r"meta-llama\/Llama-3", Some("meta-llama/Llama-3")),
            (r"a\u0041", None),
            (r"", None),
            (&"x".repeat(MAX_WORD), Some(&*"x".repeat(MAX_WORD))),
            (&"x".repeat(MAX_WORD + 1), None),
        ] {
            let body = format!(r#"{{"id": "a\"b\\", "model": "{written}", "text": "\"model\": \"no\""}}"#);
            for size in 1..body.len() {
                let mut meter = Meter::default();
                body.as_bytes().chunks(size).for_each(|chunk| meter.see(chunk));
                assert_eq!(meter.answered().model.as_deref(), expected, "{size}: {body}");
            }
        }
    }

    #[test]
    fn the_tokens_of_other_calls_are_added_to_the_usage_of_every_protocol() {
        let others = Usage::new(100, 40).with_cached(30).with_written(12, 8).with_reasoning(10);
        let others = others.with_dollars(Some(0.5));
        let (mut checked, is_read) = (0, |body: &str| !body.contains("\"x\""));
        for (body, before) in reports().into_iter().filter(|(body, _)| is_read(body)) {
            let Ok(mut document) = serde_json::from_str(body) else { continue };
            assert!(
                !add_counts(&mut document, Usage::default()) && add_counts(&mut document, others),
                "{body}"
            );
            let after = metered(&document.to_string(), 1_000, true);
            let tokens = (before.input_tokens + 100, before.output_tokens + 40);
            assert_eq!((after.input_tokens, after.output_tokens), tokens, "{body}: {document}");
            let cost = before.micro_usd.map(|cost| cost + 500_000);
            assert_eq!(
                (after.micro_usd, document.get("cost")),
                (cost, serde_json::from_str::<Value>(body).unwrap().get("cost")),
                "{body}"
            );
            let (usage, parts) = (&document["usage"], &document["usage"]["cache_creation"]);
            let [minutes, hour] =
                ["5m", "1h"].map(|time| parts[format!("ephemeral_{time}_input_tokens")].as_u64());
            let sum = minutes.zip(hour).map(|(minutes, hour)| minutes + hour);
            assert!(sum.is_none() || sum == usage["cache_creation_input_tokens"].as_u64(), "{document}");
            // Counts of parts that the server does not report are not added.
            for (before, after, more) in [
                (before.cached_tokens, after.cached_tokens, others.cached_tokens),
                (before.written_tokens, after.written_tokens, others.written_tokens),
                (before.written_hour_tokens, after.written_hour_tokens, others.written_hour_tokens),
                (before.reasoning_tokens, after.reasoning_tokens, others.reasoning_tokens),
            ] {
                assert_eq!(after, if before > 0 { before + more } else { 0 }, "{body}: {document}");
            }
            checked += 1;
        }
        assert!(checked >= 8, "{checked}");
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
        // The cost so far of a stream that was cut is not that of the whole.
        let cut = cut.replace("\"output_tokens\":1", "\"output_tokens\":1,\"cost\":0.5");
        assert_eq!(metered(&cut, 3, false), Usage::new(9, 10).with_estimated(true));
    }
}
