//! Violations in the style of compilers: the line of the source with the location marked.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use formwork_core::{Severity, Violation};
use formwork_json::{JsonPath, Places, Span, line_column};

use crate::color;

/// Formats a violation with its location in the text of a document, whose `places` include its path.
pub(crate) fn violation(file: &str, text: &str, places: &Places<'_>, violation: &Violation) -> String {
    let (span, label) = place(text, places, violation);
    let level = if violation.severity == Severity::Error { Level::ERROR } else { Level::WARNING };
    at(file, text, span, level, &violation.to_string(), &label)
}

/// Formats a message with a location in a text.
pub(crate) fn message(file: &str, text: &str, at_byte: usize, message: &str) -> String {
    let start = (0..=at_byte.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let len = text.get(start..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
    at(file, text, Span::new(start, start + len), Level::ERROR, message, "here")
}

/// Returns the part of the text that a violation marks, and the label of the mark.
fn place(text: &str, places: &Places<'_>, violation: &Violation) -> (Span, String) {
    let path = &violation.path;
    let whole = |path: &JsonPath| places.value(path);
    match violation.rule.as_str() {
        "required" | "dependentRequired" => {
            let owner = path.parent().and_then(|parent| whole(&parent)).unwrap_or_default();
            (first_byte(owner), format!("this object has no `{}`", last(path)))
        }
        "additionalProperties" | "unevaluatedProperties" | "propertyNames" => {
            (places.key(path).or_else(|| whole(path)).unwrap_or_default(), violation.detail())
        }
        _ => {
            let span = whole(path).unwrap_or_default();
            let container = matches!(span.of(text).as_bytes().first(), Some(b'{' | b'['));
            (if container { first_byte(span) } else { span }, violation.detail())
        }
    }
}

const fn first_byte(span: Span) -> Span {
    Span::new(span.start, if span.end > span.start { span.start + 1 } else { span.end })
}

fn last(path: &JsonPath) -> String {
    match path.last() {
        Some(formwork_json::Segment::Key(name)) => name.clone(),
        Some(formwork_json::Segment::Index(index)) => index.to_string(),
        None => String::new(),
    }
}

/// The maximum number of bytes of a line on each side of the location.
const MARGIN: usize = 120;

fn at(file: &str, text: &str, span: Span, level: Level<'_>, message: &str, label: &str) -> String {
    // Only a part of the line is rendered, because a document may be one line of several megabytes.
    let line_start =
        text.get(..span.start).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1);
    let line_end = text
        .get(span.start..)
        .and_then(|after| after.find('\n'))
        .map_or(text.len(), |newline| span.start + newline);
    let boundary = |offset: usize| (0..=offset).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let from = boundary(span.start.saturating_sub(MARGIN)).max(line_start);
    let to = boundary((span.end.min(line_end) + MARGIN).min(text.len())).min(line_end).max(from);
    let excerpt = text.get(from..to).unwrap_or_default();
    let marked = span.start.saturating_sub(from)
        ..span.end.min(to).saturating_sub(from).max(span.start.saturating_sub(from));
    let marked_start = marked.start;
    let (line, column) = line_column(text, span.start);
    let snippet = Snippet::source(excerpt)
        .path(file)
        .line_start(line)
        .annotation(AnnotationKind::Primary.span(marked).label(label));
    let group = level.primary_title(message).element(snippet);
    let renderer = if color::is_on(&std::io::stdout()) { Renderer::styled() } else { Renderer::plain() };
    let rendered = renderer.render(&[group]);
    // The renderer counts columns from the start of the part.
    let (_, of_part) = line_column(excerpt, marked_start);
    let place = |column| format!("{file}:{line}:{column}");
    format!("{}\n", rendered.replacen(&place(of_part), &place(column), 1))
}
