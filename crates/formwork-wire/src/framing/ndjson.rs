use formwork_core::Fault;

use super::Framing;
use super::lines::{Ends, Lines};

/// The framing of newline-delimited JSON: each message is one line. Empty lines are skipped.
///
/// ```
/// use formwork_wire::{Framing, Ndjson};
///
/// let mut lines = Ndjson::default();
/// lines.push(b"{\"done\": false}\n{\"done\": true}");
/// assert_eq!(lines.next(), Some(Ok(r#"{"done": false}"#.to_owned())));
/// assert_eq!((lines.next(), lines.finish()), (None, Some(Ok(r#"{"done": true}"#.to_owned()))));
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

    fn next(&mut self) -> Option<Result<String, Fault>> {
        loop {
            match self.0.line()? {
                Ok(line) if line.trim().is_empty() => {}
                line => return Some(line.map(str::to_owned)),
            }
        }
    }

    fn finish(&mut self) -> Option<Result<String, Fault>> {
        let rest = self.0.rest().filter(|line| !line.as_ref().is_ok_and(|line| line.trim().is_empty()))?;
        Some(rest.map(str::to_owned))
    }
}
