use formwork_core::Fault;

use super::Framing;
use super::lines::{Ends, Lines};

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
/// assert_eq!(sse.next(), Some(Ok(r#"{"text": "Lisbon"}"#.to_owned())));
/// ```
#[derive(Debug)]
pub struct Sse {
    lines: Lines,
    event: Event,
}

/// The event that has begun.
#[derive(Debug)]
struct Event {
    /// The data of the event so far.
    data: Option<String>,
    /// Whether no line of the body has been read yet.
    is_first: bool,
}

impl Default for Sse {
    fn default() -> Self {
        Self { lines: Lines::new(Ends::Either), event: Event { data: None, is_first: true } }
    }
}

impl Event {
    /// Reads one line, and returns the data of the event that it completes.
    fn line(&mut self, line: &str) -> Option<String> {
        let line =
            if std::mem::take(&mut self.is_first) { line.trim_start_matches('\u{feff}') } else { line };
        if line.is_empty() {
            return self.data.take();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        if field == "data" {
            let value = value.strip_prefix(' ').unwrap_or(value);
            match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            }
        }
        None
    }
}

impl Framing for Sse {
    fn push(&mut self, chunk: &[u8]) {
        self.lines.push(chunk);
    }

    fn next(&mut self) -> Option<Result<String, Fault>> {
        loop {
            match self.lines.line()? {
                Ok(line) => {
                    if let Some(data) = self.event.line(line) {
                        return Some(Ok(data));
                    }
                }
                Err(fault) => return Some(Err(fault)),
            }
        }
    }

    fn finish(&mut self) -> Option<Result<String, Fault>> {
        match self.lines.rest() {
            Some(Err(fault)) => return Some(Err(fault)),
            Some(Ok(line)) => {
                self.event.line(line);
            }
            None => {}
        }
        self.event.data.take().map(Ok)
    }
}
