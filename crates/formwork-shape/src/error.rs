use std::fmt::Write as _;

use formwork_json::{Span, line_column};

/// A text that is no shape: where, what was expected there, and what to write.
///
/// `Display` is one line, [`pointed`](Self::pointed) shows the place.
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
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// The bytes of the text that are at fault; none at its end.
    pub span: Span,
    /// The reason, what was expected, and the nearest right name.
    pub message: String,
    /// The part of the line that is shown, and the character in it from which on it is marked, and how many.
    excerpt: (String, usize, usize),
}

/// How many characters of a line are shown on each side of the place.
const MARGIN: usize = 60;

impl ShapeError {
    pub(crate) fn new(text: &str, span: Span, message: impl Into<String>) -> Self {
        let (line, column) = line_column(text, span.start);
        Self { line, column, span, message: message.into(), excerpt: excerpt(text, span, column) }
    }

    /// The message with its place in this file, the line of the shape, and a caret below. Ends in a newline.
    pub fn pointed(&self, file: &str) -> String {
        let Self { line, column, message, excerpt: (shown, from, marked), .. } = self;
        let number = line.to_string();
        let gutter = " ".repeat(number.len());
        let mut out =
            format!("{file}:{line}:{column}: {message}\n{gutter} |\n{number} | {shown}\n{gutter} | ");
        // Writing to a string cannot fail.
        _ = writeln!(out, "{}{}", " ".repeat(*from), "^".repeat(*marked));
        out
    }
}

/// The part of the line around a place; what a terminal would act on is left out.
fn excerpt(text: &str, span: Span, column: usize) -> (String, usize, usize) {
    let lines =
        text.get(..span.start).map_or(0, |before| before.rfind('\n').map_or(0, |newline| newline + 1));
    let line = text.get(lines..).and_then(|rest| rest.lines().next()).unwrap_or_default();
    let first = column.saturating_sub(1).saturating_sub(MARGIN);
    let marked = span.of(text).lines().next().unwrap_or_default().chars().count().clamp(1, MARGIN);
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    let mut shown: String = line.chars().skip(first).take(2 * MARGIN).map(visible).collect();
    let mut from = column.saturating_sub(1) - first;
    if first > 0 {
        shown.insert(0, '…');
        from += 1;
    }
    if line.chars().nth(first + 2 * MARGIN).is_some() {
        shown.push('…');
    }
    (shown.trim_end().to_owned(), from, marked)
}
