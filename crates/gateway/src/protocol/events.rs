//! Streams in pieces, split where their events or lines end.

use axum::body::Bytes;
use memchr::{memchr, memmem};
use serde_json::{Value, json};

/// A body in pieces, split where its events or lines end. The events are the bytes of the body, all of them.
#[derive(Debug, Default)]
pub(crate) struct Events {
    bytes: Vec<u8>,
    /// The number of bytes that were returned, and of those that were examined.
    taken: usize,
    seen: usize,
    /// Whether what was returned ends within an event.
    is_open: bool,
}

impl Events {
    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.bytes.drain(..self.taken);
        (self.seen, self.taken) = (self.seen - self.taken, 0);
        self.bytes.extend_from_slice(piece);
    }

    /// Returns the next event, or the next line, that is whole, with its end.
    pub(crate) fn next(&mut self, is_lines: bool) -> Option<Vec<u8>> {
        let ends = ends(is_lines);
        while let Some(at) =
            self.bytes.get(self.seen..)?.iter().position(|byte| matches!(byte, b'\n' | b'\r'))
        {
            self.seen += at + 1;
            let event = self.bytes.get(self.taken..self.seen).unwrap_or_default();
            if ends.iter().any(|end| event.ends_with(end)) {
                self.taken = self.seen;
                return Some(event.to_vec());
            }
        }
        self.seen = self.bytes.len();
        None
    }

    /// Takes the next piece of a stream. Returns the lines that are whole, or the `events`, and the beginning of one that is too long to keep.
    pub(crate) fn whole(&mut self, piece: Bytes, is_lines: bool, events: bool) -> Bytes {
        let all = ends(is_lines);
        let ends = ends(is_lines || !events);
        let is_open = |taken: &[u8]| !all.iter().any(|end| taken.ends_with(end));
        if self.is_empty() && ends.iter().any(|end| piece.ends_with(end)) {
            self.is_open = is_open(&piece);
            return piece;
        }
        self.push(&piece);
        // An end may stand in two pieces.
        let from = self.seen.saturating_sub(3);
        let new = self.bytes.get(from..).unwrap_or_default();
        let end = ends.iter().filter_map(|end| Some(from + memmem::rfind(new, end)? + end.len())).max();
        self.seen = self.bytes.len();
        self.taken = end.unwrap_or(if self.seen > MAX_EVENT { self.seen } else { 0 });
        let taken = self.bytes.get(..self.taken).unwrap_or_default();
        if !taken.is_empty() {
            self.is_open = is_open(taken);
        }
        Bytes::copy_from_slice(taken)
    }

    /// Returns whether there are no bytes of an event that is not whole.
    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes.len() == self.taken
    }

    /// Returns the bytes after the last complete event.
    pub(crate) fn rest(mut self) -> Vec<u8> {
        self.bytes.split_off(self.taken)
    }

    /// Returns what stands before the error of a stream that was cut: a document that lacks the end of its event alone, and the end of an
    /// event whose beginning was returned. A part of a line cannot be read.
    pub(crate) fn cut(self, is_lines: bool) -> Vec<u8> {
        let is_open = self.is_open;
        let mut rest = self.rest();
        if document(&rest).is_null() {
            rest.clear();
        }
        if is_open || !rest.is_empty() {
            rest.extend(ends(is_lines).first().copied().unwrap_or_default());
        }
        rest
    }
}

/// The number of bytes of an event that are kept until its end comes.
const MAX_EVENT: usize = 4 << 20;

/// Returns the ends of lines or of events.
const fn ends(is_lines: bool) -> &'static [&'static [u8]] {
    if is_lines { &[b"\n"] } else { &[b"\n\n", b"\r\n\r\n", b"\r\r"] }
}

/// Returns the events of a whole body; its end ends the last one.
pub(crate) fn split(bytes: &[u8], is_lines: bool) -> Vec<Vec<u8>> {
    let mut events = Events::default();
    events.push(bytes);
    let mut all: Vec<_> = std::iter::from_fn(|| events.next(is_lines)).collect();
    all.extend(Some(events.rest()).filter(|rest| !rest.is_empty()));
    all
}

/// Returns an event of Chat Completions without the `null` that OpenAI sends where the usage has its place in the last one; `None` for an
/// event that has the usage alone.
pub(crate) fn without_usage(mut event: Vec<u8>) -> Option<Vec<u8>> {
    const MARK: &[u8] = b"\"usage\"";
    /// No part of a text, in which quotes are escaped.
    const NULL: &[u8] = b",\"usage\":null";

    if let Some(at) = memmem::find(&event, NULL) {
        event.drain(at..at + NULL.len());
    }
    // Most events have no usage, and are not parsed.
    let is_usage = memmem::find(&event, MARK).is_some() && {
        let document = document(&event);
        document["usage"].is_object() && document["choices"].as_array().is_some_and(Vec::is_empty)
    };
    (!is_usage).then_some(event)
}

/// Returns the document of an event; `null` for comments, ends of streams and other text.
pub(crate) fn document(event: &[u8]) -> Value {
    let text = String::from_utf8_lossy(event);
    let lines = text.lines().filter_map(|line| match line.strip_prefix("data:") {
        Some(data) => Some(data.trim_start()),
        None => line.starts_with('{').then_some(line),
    });
    serde_json::from_str(&lines.collect::<Vec<_>>().join("\n")).unwrap_or(Value::Null)
}

/// The signs of the end of a stream of a protocol.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StreamEnd {
    /// Texts of which the last event has one.
    pub(crate) marks: &'static [&'static str],
    /// Whether the last event may be long: its mark stands at its beginning, and the total of the tokens is a sign as well.
    pub(crate) is_long: bool,
}

/// Returns whether a mark is a sign of the end after these bytes, and not a part of a text, in which line ends and quotes are escaped.
fn is_sign(mark: &str, before: &[u8]) -> bool {
    if mark.starts_with('"') {
        return before.trim_ascii_end().ends_with(b"{") || before.trim_ascii_end().ends_with(b",");
    }
    let lines: [&[u8]; 4] = [b"event: ", b"event:", b"data: ", b"data:"];
    let mut lines = lines.iter().filter_map(|line| before.strip_suffix(*line));
    lines.any(|before| before.ends_with(b"\n") || before.ends_with(b"\r"))
        || before.ends_with(b"\"type\":\"")
        || before.ends_with(b"\"type\": \"")
}

/// Finds the end of a stream, and an error in it, in pieces of any length.
#[derive(Default)]
pub(crate) struct EndMark {
    end: StreamEnd,
    /// The last bytes of the pieces so far.
    tail: Vec<u8>,
    /// The beginning of the line that has not ended.
    line: Vec<u8>,
    is_seen: bool,
    /// The event that may be an error, as far as it came.
    event: Option<Vec<u8>>,
    error: Option<Value>,
}

impl EndMark {
    /// The bytes of the end of a piece that are examined.
    const LONGEST: usize = 64;
    /// The beginnings of an event with an error, in all protocols: servers have those of others. A text of an answer never begins a line,
    /// because its line ends are escaped.
    const ERRORS: [&[u8]; 9] = [
        b"event: error",
        b"event:error",
        b"event: response.failed",
        b"data: {\"error\"",
        b"data:{\"error\"",
        b"data: {\"type\":\"error\"",
        b"data: {\"type\": \"error\"",
        b"data: {\"type\":\"response.failed\"",
        b"{\"error\"",
    ];
    /// The length of the longest of them.
    const ERROR: usize = 31;
    /// The number of bytes that are kept of an error. A failed response repeats its request.
    const MAX_ERROR: usize = 1 << 20;
    /// The number of bytes that are told of an error that is no JSON.
    const MAX_WORDS: usize = 500;

    pub(crate) fn new(end: StreamEnd) -> Self {
        Self { end, ..Self::default() }
    }

    pub(crate) fn see(&mut self, piece: &[u8]) {
        self.look_for_error(piece);
        let text = piece.trim_ascii_end();
        let needed = if self.end.is_long { text.len() } else { text.len().min(Self::LONGEST) };
        if self.tail.is_empty() {
            self.tail.push(b'\n');
        } else if needed < text.len() {
            self.tail.clear();
        }
        self.tail.extend_from_slice(text.get(text.len() - needed..).unwrap_or_default());
        let is_end = |mark: &str, at: usize| is_sign(mark, self.tail.get(..at).unwrap_or_default());
        let has = |mark: &&str| memmem::find_iter(&self.tail, mark.as_bytes()).any(|at| is_end(mark, at));
        self.is_seen |= self.end.marks.iter().any(has);
        if matches!(piece.last(), Some(b'\n' | b'\r')) && !self.tail.ends_with(b"\n") {
            self.tail.push(b'\n');
        }
        self.tail.drain(..self.tail.len().saturating_sub(Self::LONGEST));
    }

    fn look_for_error(&mut self, mut piece: &[u8]) {
        while self.error.is_none() && !piece.is_empty() {
            let (line, rest) = piece.split_at(memchr(b'\n', piece).map_or(piece.len(), |at| at + 1));
            piece = rest;
            if self.event.is_some() {
                self.extend(line);
                continue;
            }
            let free = Self::ERROR.saturating_sub(self.line.len());
            let (more, others) = line.split_at(line.len().min(free));
            self.line.extend_from_slice(more);
            if Self::ERRORS.iter().any(|error| self.line.starts_with(error)) {
                self.event = Some(Vec::new());
                let beginning = std::mem::take(&mut self.line);
                self.extend(&[beginning.as_slice(), others].concat());
            } else if line.ends_with(b"\n") {
                self.line.clear();
            }
        }
    }

    /// Adds a line, or a part of one, to the event.
    fn extend(&mut self, line: &[u8]) {
        let Some(event) = &mut self.event else { return };
        event.extend_from_slice(line);
        let ends: &[&[u8]] = if event.starts_with(b"{") { &[b"\n"] } else { &[b"\n\n", b"\n\r\n"] };
        if event.len() > Self::MAX_ERROR || ends.iter().any(|end| event.ends_with(end)) {
            self.decide(true);
        }
    }

    /// Decides whether the event is an error.
    fn decide(&mut self, is_whole: bool) {
        let Some(event) = self.event.take() else { return };
        let is_named = event.starts_with(b"event:");
        let mut document = document(&event);
        if let Some(error) = document.pointer_mut("/response/error").filter(|error| !error.is_null()) {
            document = json!({"error": error.take()});
        }
        let is_error = match &document["error"] {
            Value::Object(_) => true,
            Value::String(words) => !words.is_empty(),
            // Some servers say in every event that there is none.
            _ => is_named || matches!(document["type"].as_str(), Some("error" | "response.failed")),
        };
        if document.is_null() && is_whole {
            // It is no JSON, or it is too long.
            let text = String::from_utf8_lossy(event.get(..Self::MAX_WORDS).unwrap_or(&event));
            document = json!({"error": text.trim()});
        } else if document.is_null() || !is_error {
            return;
        }
        self.error = Some(document);
    }

    pub(crate) const fn is_seen(&self) -> bool {
        self.is_seen
    }

    /// Returns the error that the target told.
    pub(crate) const fn error(&self) -> Option<&Value> {
        self.error.as_ref()
    }

    /// Ends the stream, and with it an event without its end. Returns whether that is an error, which is one if its document is whole.
    pub(crate) fn ends_with_error(&mut self) -> bool {
        let was_told = self.error.is_some();
        self.decide(false);
        !was_told && self.error.is_some()
    }

    pub(crate) const fn is_long(&self) -> bool {
        self.end.is_long
    }
}
