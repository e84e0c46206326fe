use std::ops::Range;

use serde::{Deserialize, Serialize};

/// A range of bytes of the text that was read: `start` is inside it, `end` is not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// The bytes from `start` up to `end`.
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// No bytes, at one place.
    pub const fn at(at: usize) -> Self {
        Self { start: at, end: at }
    }

    /// The number of bytes.
    pub const fn len(self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// Whether it covers no byte.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Whether every byte of `other` lies in it.
    pub const fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// The part of `text` that it names; empty where the text has no such part.
    pub fn of(self, text: &str) -> &str {
        text.get(self.range()).unwrap_or_default()
    }

    /// The same as a [`Range`].
    pub const fn range(self) -> Range<usize> {
        self.start..self.end
    }

    /// The same bytes, counted from `by` bytes earlier.
    #[must_use]
    pub const fn shifted(self, by: usize) -> Self {
        Self { start: self.start + by, end: self.end + by }
    }
}

/// The 1-based line and column (in characters) of a byte offset, as editors count them.
///
/// An offset past the end, or inside a character, counts as the character before it.
///
/// ```
/// assert_eq!(formwork_json::line_column("{\n \"ä\": x", 9), (2, 7));
/// ```
pub fn line_column(text: &str, at: usize) -> (usize, usize) {
    let at = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let before = text.get(..at).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let column = before.get(line_start..).unwrap_or_default().chars().count();
    (before.bytes().filter(|b| *b == b'\n').count() + 1, column + 1)
}
