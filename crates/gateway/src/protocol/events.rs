//! Streams in pieces, split where their events or lines end.

use serde_json::Value;

/// A body in pieces, split where its events or lines end. The events are the bytes of the body, all of them.
#[derive(Debug, Default)]
pub(crate) struct Events {
    bytes: Vec<u8>,
    /// The number of bytes that were examined.
    seen: usize,
}

impl Events {
    pub(crate) fn push(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
    }

    /// Returns the next event, or the next line, that is whole, with its end.
    pub(crate) fn next(&mut self, is_lines: bool) -> Option<Vec<u8>> {
        let ends: &[&[u8]] = if is_lines { &[b"\n"] } else { &[b"\n\n", b"\r\n\r\n", b"\r\r"] };
        while let Some(at) =
            self.bytes.get(self.seen..)?.iter().position(|byte| matches!(byte, b'\n' | b'\r'))
        {
            self.seen += at + 1;
            if ends.iter().any(|end| self.bytes[..self.seen].ends_with(end)) {
                let rest = self.bytes.split_off(self.seen);
                self.seen = 0;
                return Some(std::mem::replace(&mut self.bytes, rest));
            }
        }
        self.seen = self.bytes.len();
        None
    }

    /// Takes the next piece of a stream of Chat Completions. Returns the events that are whole, without the one that has the usage
    /// alone.
    pub(crate) fn without_usage(&mut self, piece: &[u8]) -> Vec<u8> {
        self.push(piece);
        let mut kept = Vec::with_capacity(piece.len());
        while let Some(event) = self.next(false) {
            if !is_usage(&event) {
                kept.extend(event);
            }
        }
        kept
    }

    /// Returns whether there are no bytes of an event that is not whole.
    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the bytes after the last complete event.
    pub(crate) fn rest(self) -> Vec<u8> {
        self.bytes
    }
}

/// Returns whether an event of Chat Completions has the usage and nothing else.
pub(crate) fn is_usage(event: &[u8]) -> bool {
    const MARK: &[u8] = b"\"usage\"";

    // Most events have no usage, and are not parsed.
    event.windows(MARK.len()).any(|part| part == MARK) && {
        let document = document(event);
        document["usage"].is_object() && document["choices"].as_array().is_some_and(Vec::is_empty)
    }
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
