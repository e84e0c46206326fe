use formwork_core::{Fault, FaultKind};
use formwork_wire::{Deltas, Messages, lenient, quoted};

use super::reader::{Framing, Reader};
use super::shape::Shape;

/// Reads the events of a stream that ends with `[DONE]`.
pub(super) struct Events {
    reader: Reader,
    /// Whether an event with JSON was received.
    has_event: bool,
}

impl Events {
    pub(super) const fn new(reader: Reader) -> Self {
        Self { reader, has_event: false }
    }
}

impl Messages for Events {
    fn message(&mut self, text: &str, out: &mut Deltas) -> Result<(), Fault> {
        let bad = |message: String| Fault::new(FaultKind::BadWire, message);
        match text.trim() {
            // An empty event is a keep-alive.
            "" => Ok(()),
            "[DONE]" if self.reader.has_choice() => {
                self.reader.end(out);
                Ok(())
            }
            "[DONE]" => Err(bad("the stream has `[DONE]` before any event".to_owned())),
            text => {
                let mut shape = Shape::default();
                lenient::read_str(text, &mut shape)
                    .map_err(|_| bad(format!("an event of the stream is not JSON: {}", quoted(text))))?;
                self.has_event = true;
                self.reader.take(&mut shape, text.as_bytes(), Framing::Chunk, out).map(|_| ())
            }
        }
    }

    /// Ends a stream without `[DONE]`, which some servers omit. It is complete if a finish reason was received, and cut off
    /// otherwise.
    fn end(&mut self, out: &mut Deltas) -> Result<(), Fault> {
        if self.reader.has_finished() {
            self.reader.end(out);
            return Ok(());
        }
        if self.has_event && !self.reader.has_choice() {
            return Err(Fault::new(FaultKind::BadWire, "the stream has no `choices`"));
        }
        Err(Fault::cut_off("the stream ended without a `finish_reason`"))
    }
}
