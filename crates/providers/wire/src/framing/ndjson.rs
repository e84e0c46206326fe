use std::borrow::Cow;

use formwork_core::Fault;

use super::Framing;
use super::lines::{Ends, Lines, rest_text, text};

/// The framing of newline-delimited JSON: each message is one line. Empty lines are skipped.
///
/// ```
/// use formwork_wire::{Framing, Ndjson};
///
/// let mut lines = Ndjson::default();
/// lines.push(b"{\"done\": false}\n{\"done\": true}");
/// assert_eq!(lines.next(), Some(Ok(r#"{"done": false}"#.into())));
/// assert_eq!(lines.next(), None);
/// assert_eq!(lines.finish(), Some(Ok(r#"{"done": true}"#.to_owned())));
/// ```
#[derive(Debug)]
pub struct Ndjson(Lines);

impl Default for Ndjson {
    fn default() -> Self {
        Self(Lines::new(Ends::LineFeed))
    }
}

impl Framing for Ndjson {
    fn push(&mut self, chunk: &[u8]) {
        self.0.push(chunk);
    }

    fn next(&mut self) -> Option<Result<Cow<'_, str>, Fault>> {
        loop {
            let line = self.0.line()?;
            if !self.0.bytes(&line).trim_ascii().is_empty() {
                return Some(text(self.0.bytes(&line)).map(Cow::Borrowed));
            }
        }
    }

    fn finish(&mut self) -> Option<Result<String, Fault>> {
        let rest = self.0.rest();
        let rest = rest_text(self.0.bytes(&rest)).map(str::to_owned);
        (!rest.as_ref().is_ok_and(|line| line.trim().is_empty())).then_some(rest)
    }
}
