use std::borrow::Cow;
use std::ops::Range;

use formwork_core::Fault;

use super::Framing;
use super::lines::{Ends, Lines, rest_text, text};

/// The framing of server-sent events (WHATWG HTML, section 9.2.6): each message is the data of one event.
///
/// Event names, identifiers and retry times are ignored, because no model API needs them. Unlike a browser, the framing returns
/// the last event of a body even without a final empty line, because some servers omit that line.
///
/// ```
/// use formwork_wire::{Framing, Sse};
///
/// let mut sse = Sse::default();
/// sse.push(b"event: delta\ndata: {\"text\": \"Lis");
/// assert_eq!(sse.next(), None);
/// sse.push(b"bon\"}\n\n");
/// assert_eq!(sse.next(), Some(Ok(r#"{"text": "Lisbon"}"#.into())));
/// ```
#[derive(Debug)]
pub struct Sse {
    lines: Lines,
    event: Event,
}

/// The event that has begun.
#[derive(Debug)]
struct Event {
    data: Data,
    /// Whether no line of the body has been read yet.
    is_first: bool,
}

/// The data of an event so far.
#[derive(Debug, Default)]
enum Data {
    #[default]
    None,
    /// A part of one line, as for nearly all events: it is not copied.
    Line(Range<usize>),
    Bytes(Vec<u8>),
}

impl Default for Sse {
    fn default() -> Self {
        let event = Event { data: Data::None, is_first: true };
        Self { lines: Lines::new(Ends::Either), event }
    }
}

impl Event {
    /// Reads one line, and returns whether it completes the event.
    fn line(&mut self, lines: &Lines, mut line: Range<usize>) -> bool {
        if std::mem::take(&mut self.is_first) && lines.bytes(&line).starts_with(b"\xef\xbb\xbf") {
            line.start += 3;
        }
        if line.is_empty() {
            return true;
        }
        let value = match lines.bytes(&line) {
            b"data" => line.end..line.end,
            [b'd', b'a', b't', b'a', b':', b' ', ..] => line.start + 6..line.end,
            [b'd', b'a', b't', b'a', b':', ..] => line.start + 5..line.end,
            _ => return false,
        };
        self.keep(lines);
        match &mut self.data {
            Data::Bytes(data) => {
                data.push(b'\n');
                data.extend_from_slice(lines.bytes(&value));
            }
            data => *data = Data::Line(value),
        }
        false
    }

    /// Copies the data, because its line will not be there any more.
    fn keep(&mut self, lines: &Lines) {
        if let Data::Line(line) = &self.data {
            self.data = Data::Bytes(lines.bytes(line).to_owned());
        }
    }

    /// Returns the data of an event that is complete.
    fn take<'a>(&mut self, lines: &'a Lines) -> Option<Result<Cow<'a, str>, Fault>> {
        match std::mem::take(&mut self.data) {
            Data::None => None,
            Data::Line(line) => Some(text(lines.bytes(&line)).map(Cow::Borrowed)),
            Data::Bytes(data) => Some(text(&data).map(|data| Cow::Owned(data.to_owned()))),
        }
    }
}

impl Framing for Sse {
    fn push(&mut self, chunk: &[u8]) {
        self.event.keep(&self.lines);
        self.lines.push(chunk);
    }

    fn next(&mut self) -> Option<Result<Cow<'_, str>, Fault>> {
        loop {
            let line = self.lines.line()?;
            if self.event.line(&self.lines, line) && !matches!(self.event.data, Data::None) {
                return self.event.take(&self.lines);
            }
        }
    }

    fn finish(&mut self) -> Option<Result<String, Fault>> {
        let rest = self.lines.rest();
        if let Err(fault) = rest_text(self.lines.bytes(&rest)) {
            return Some(Err(fault));
        }
        self.event.line(&self.lines, rest);
        Some(self.event.take(&self.lines)?.map(Cow::into_owned))
    }
}
