use std::fmt::Write as _;

use formwork_json::{Span, line_column};

/// A mistake in the text of a shape: its location, the expectation, and the correction.
///
/// `Display` formats one line; [`pointed`](Self::pointed) adds the line of the text and a caret.
///
/// ```
/// let error = formwork_shape::Shape::parse("{\n  \"name\": strng\n}").unwrap_err();
/// assert_eq!(error.to_string(), "line 2, column 11: there is no type `strng`: did you mean `string`?");
/// assert_eq!(error.pointed("person.shape"), "\
/// person.shape:2:11: there is no type `strng`: did you mean `string`?
///   |
/// 2 |   \"name\": strng
///   |           ^^^^^
/// ");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
#[non_exhaustive]
pub struct ShapeError {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The wrong bytes of the text; empty at its end.
    pub span: Span,
    /// The reason, the expectation, and the nearest valid name.
    pub message: String,
    /// The excerpt of the line, the character in it at which the mark starts, and the length of the mark.
    excerpt: (String, usize, usize),
}

/// The maximum number of characters of the excerpt on each side of the mistake.
const MARGIN: usize = 60;

impl ShapeError {
    pub(crate) fn new(text: &str, span: Span, message: impl Into<String>) -> Self {
        let (line, column) = line_column(text, span.start);
        Self { line, column, span, message: message.into(), excerpt: excerpt(text, span, column) }
    }

    /// Returns the message with the file's name, the line of the shape, and a caret below the mistake. Ends in a
    /// newline.
    pub fn pointed(&self, file: &str) -> String {
        let Self { line, column, message, excerpt: (snippet, from, marked), .. } = self;
        let number = line.to_string();
        let gutter = " ".repeat(number.len());
        let mut out =
            format!("{file}:{line}:{column}: {message}\n{gutter} |\n{number} | {snippet}\n{gutter} | ");
        _ = writeln!(out, "{}{}", " ".repeat(*from), "^".repeat(*marked));
        out
    }
}

/// Returns the part of the line around a mistake, without control characters.
fn excerpt(text: &str, span: Span, column: usize) -> (String, usize, usize) {
    let lines =
        text.get(..span.start).map_or(0, |before| before.rfind('\n').map_or(0, |newline| newline + 1));
    let line = text.get(lines..).and_then(|rest| rest.lines().next()).unwrap_or_default();
    let first = column.saturating_sub(1).saturating_sub(MARGIN);
    let marked = span.of(text).lines().next().unwrap_or_default().chars().count().clamp(1, MARGIN);
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    let mut snippet: String = line.chars().skip(first).take(2 * MARGIN).map(visible).collect();
    let mut from = column.saturating_sub(1) - first;
    if first > 0 {
        snippet.insert(0, '…');
        from += 1;
    }
    if line.chars().nth(first + 2 * MARGIN).is_some() {
        snippet.push('…');
    }
    (snippet.trim_end().to_owned(), from, marked)
}
