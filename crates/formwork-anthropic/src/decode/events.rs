use formwork_core::{Fault, FaultKind};
use formwork_wire::{Deltas, Messages, lenient, quoted};

use super::reader::Reader;
use super::shape::Event;

/// Reads the events of a stream that ends with `message_stop`.
pub(super) struct Events {
    reader: Reader,
    has_event: bool,
    /// Whether `message_start` was received.
    has_begun: bool,
}

impl Events {
    pub(super) const fn new(reader: Reader) -> Self {
        Self { reader, has_event: false, has_begun: false }
    }
}

impl Messages for Events {
    fn message(&mut self, text: &str, out: &mut Deltas) -> Result<(), Fault> {
        let bad = |what: &str| Fault::new(FaultKind::BadWire, format!("{what}: {}", quoted(text)));
        if text.trim().is_empty() {
            return Ok(());
        }
        let mut event = Event::default();
        lenient::read_str(text, &mut event)
            .map_err(|_| bad("an event of the stream is not one of the Messages API"))?;
        if !event.error.is_none() {
            return Err(self.reader.broken_off(&event.error));
        }
        self.has_event = true;
        self.reader.count(event.usage);
        match event.kind.as_str() {
            Some("message_start") => {
                self.has_begun = true;
                let message = event.message.unwrap_or_default();
                self.reader.count(message.usage);
                self.reader.answered_by(message.model);
            }
            Some("content_block_start") => {
                self.reader.begin(event.index.0, *event.content_block.unwrap_or_default(), out);
            }
            Some("content_block_delta") => {
                self.reader.more(event.index.0, &event.delta, out);
            }
            Some("content_block_stop") => self.reader.close(out),
            Some("message_delta") => {
                self.reader.stop(event.delta.stop_reason, event.delta.stop_details);
            }
            Some("message_stop") if self.has_begun => self.reader.end(out),
            Some("message_stop") => return Err(bad("the stream has `message_stop` before `message_start`")),
            // `ping`, and event types that the API may add.
            Some(_) => {}
            None => return Err(bad("an event of the stream has no `type`")),
        }
        Ok(())
    }

    /// Ends a stream without `message_stop`. It is complete if a stop reason was received, and cut off otherwise.
    fn end(&mut self, out: &mut Deltas) -> Result<(), Fault> {
        if self.reader.has_stopped() {
            self.reader.end(out);
            return Ok(());
        }
        if self.has_event && !self.has_begun {
            return Err(Fault::new(FaultKind::BadWire, "the stream has no `message_start`"));
        }
        Err(Fault::cut_off("the stream ended without `message_stop`"))
    }
}
