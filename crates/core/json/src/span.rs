use std::ops::Range;

use serde::{Deserialize, Serialize};

/// A range of bytes of a text, including `start` and excluding `end`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Span {
    /// The offset of the first byte.
    pub start: usize,
    /// The offset after the last byte.
    pub end: usize,
}

impl Span {
    /// Creates the range from `start` up to `end`.
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// Creates an empty range at an offset.
    pub const fn at(at: usize) -> Self {
        Self { start: at, end: at }
    }

    /// Returns the number of bytes.
    pub const fn len(self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// Returns whether the range is empty.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns whether `other` is entirely inside this range.
    pub const fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// Returns the bytes of `text` in this range; empty if the range is not a part of `text`.
    ///
    /// ```
    /// use formwork_json::Span;
    ///
    /// let span = Span::new(8, 12);
    /// assert_eq!((span.of(r#"{"age": true}"#), span.len()), ("true", 4));
    /// assert!(span.contains(Span::at(9)));
    /// ```
    pub fn of(self, text: &str) -> &str {
        text.get(self.range()).unwrap_or_default()
    }

    /// Returns the same bytes as a [`Range`].
    pub const fn range(self) -> Range<usize> {
        self.start..self.end
    }

    /// Returns the range shifted by `by` bytes towards the end.
    #[must_use]
    pub const fn shifted(self, by: usize) -> Self {
        Self { start: self.start + by, end: self.end + by }
    }
}

/// Returns the 1-based line and column (in characters) of a byte offset, as editors show them.
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
