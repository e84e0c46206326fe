use std::ops::Range;

use formwork_core::{Fault, FaultKind};

/// The line ends of a framing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ends {
    /// A line feed, with an optional carriage return before it.
    LineFeed,
    /// A line feed, a carriage return, or both.
    Either,
}

/// Splits bytes into lines.
#[derive(Debug)]
pub(super) struct Lines {
    ends: Ends,
    bytes: Vec<u8>,
    /// The number of bytes that were returned already.
    start: usize,
    /// The number of bytes that were searched already.
    searched: usize,
    /// Whether the last line ended with a carriage return, so that a line feed that follows belongs to it.
    after_return: bool,
}

impl Lines {
    pub(super) const fn new(ends: Ends) -> Self {
        Self { ends, bytes: Vec::new(), start: 0, searched: 0, after_return: false }
    }

    pub(super) fn push(&mut self, chunk: &[u8]) {
        // The remaining bytes are the beginning of one line, so this moves few bytes.
        if self.start == self.bytes.len() {
            self.bytes.clear();
        } else {
            self.bytes.drain(..self.start);
        }
        self.searched -= self.start;
        self.start = 0;
        self.bytes.extend_from_slice(chunk);
    }

    /// Returns the place of the next complete line, without its end. It is valid until the next [`push`](Self::push).
    pub(super) fn line(&mut self) -> Option<Range<usize>> {
        if self.after_return && self.start < self.bytes.len() {
            self.after_return = false;
            if self.bytes[self.start] == b'\n' {
                self.start += 1;
                self.searched = self.searched.max(self.start);
            }
        }
        let unsearched = &self.bytes[self.searched..];
        let length = match self.ends {
            Ends::LineFeed => memchr::memchr(b'\n', unsearched),
            Ends::Either => memchr::memchr2(b'\n', b'\r', unsearched),
        };
        let Some(length) = length else {
            self.searched = self.bytes.len();
            return None;
        };
        let end = self.searched + length;
        self.after_return = self.bytes[end] == b'\r';
        let start = std::mem::replace(&mut self.start, end + 1);
        self.searched = self.start;
        Some(start..end - usize::from(self.bytes[start..end].ends_with(b"\r")))
    }

    /// Returns the place of the last line if it has no end; an empty place if there is none.
    pub(super) fn rest(&mut self) -> Range<usize> {
        let start = std::mem::replace(&mut self.start, self.bytes.len());
        self.searched = self.start;
        start..self.start
    }

    /// Returns the bytes at a place.
    pub(super) fn bytes(&self, place: &Range<usize>) -> &[u8] {
        self.bytes.get(place.clone()).unwrap_or_default()
    }
}

/// Returns the text of a line.
pub(super) fn text(line: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(line).map_err(|_| Fault::new(FaultKind::BadWire, "the response is not UTF-8"))
}

/// Returns the text of the last line without an end.
pub(super) fn rest_text(rest: &[u8]) -> Result<&str, Fault> {
    match std::str::from_utf8(rest) {
        Err(error) if error.error_len().is_none() => Err(Fault::cut_off("it ends within a character")),
        _ => text(rest.strip_suffix(b"\r").unwrap_or(rest)),
    }
}
