//! Prints the events of an extraction as they come, one JSON object per line.

use formwork_core::{Error, ErrorKind, Outcome};
use formwork_extract::{Extraction, Update};
use serde_json::{Value, json};

use crate::exit::Failed;
use crate::output;

/// Runs an extraction and prints its events. Returns the result, which is not printed.
///
/// # Errors
/// [`Failed`] if an event cannot be written.
pub(super) async fn run(extraction: Extraction<Value>) -> Result<Result<Outcome<Value>, Error>, Failed> {
    let (mut updates, mut partials) = (extraction.stream(), Partials::default());
    loop {
        let line = match updates.next().await {
            Some(Ok(Update::Done(outcome))) => return Ok(Ok(outcome)),
            Some(Ok(update)) => partials.line(&update),
            Some(Err(error)) => return Ok(Err(error)),
            None => return Ok(Err(Error::new(ErrorKind::Cancelled, "the extraction ended early"))),
        };
        if let Some(line) = line {
            output::row(&line)?;
        }
    }
}

/// The partial documents of the open call. All of them together are at most nine times as long as the answer: one is printed when the
/// answer has grown by an eighth, or cannot become valid. White space and the names of members change no document.
#[derive(Default)]
struct Partials {
    /// The length of the answer so far in bytes.
    len: usize,
    /// The length at the last line.
    printed: usize,
    /// The document of the last line.
    last: Option<Value>,
    /// Whether the last line has a violation.
    is_wrong: bool,
}

impl Partials {
    /// Returns the line of an update, if it has one.
    fn line(&mut self, update: &Update<Value>) -> Option<Value> {
        Some(match update {
            Update::Started { attempt, target, ask } => {
                *self = Self::default();
                json!({"event": "started", "attempt": attempt, "target": target, "ask": ask})
            }
            Update::Text(text) => {
                self.len += text.len();
                return None;
            }
            Update::Partial(partial) => {
                let is_new = partial.violation().is_some() && !self.is_wrong;
                let has_grown = self.len - self.printed > self.printed / 8;
                if !is_new && (!has_grown || self.last.as_ref() == Some(partial.value())) {
                    return None;
                }
                (self.printed, self.is_wrong) = (self.len, partial.violation().is_some());
                self.last = Some(partial.value().clone());
                let mut line = json!({"event": "partial", "value": partial.value()});
                if let Some(violation) = partial.violation() {
                    line["violation"] = json!(violation);
                }
                line
            }
            Update::Item(item) => json!({"event": "item", "path": item.path, "value": item.value}),
            Update::Replaced { path } => json!({"event": "replaced", "path": path}),
            Update::Asking { attempt, target, ask, wait } => {
                let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                json!({"event": "asking", "attempt": attempt, "target": target, "ask": ask, "wait_ms": wait_ms})
            }
            _ => return None,
        })
    }
}
