use formwork_core::{Fault, FaultKind};
use formwork_wire::{Deltas, Messages, quoted};

use super::object::Maybe;
use super::reader::{Framing, Reader};

/// The events of a stream, `[DONE]` at its end.
pub(super) struct Events {
    reader: Reader,
    /// Whether an event came that is JSON.
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
            // sent to keep the connection
            "" => Ok(()),
            "[DONE]" if self.reader.has_choice() => {
                self.reader.end(out);
                Ok(())
            }
            "[DONE]" => Err(bad("the stream ended before it began".to_owned())),
            text => {
                let Maybe(shape) = serde_json::from_str(text)
                    .map_err(|_| bad(format!("an event of the stream is not JSON: {}", quoted(text))))?;
                self.has_event = true;
                self.reader.take(shape.unwrap_or_default(), text.as_bytes(), Framing::Chunk, out).map(|_| ())
            }
        }
    }

    /// Some servers leave out `[DONE]`: an answer with a reason to finish is complete, any other was cut off.
    fn end(&mut self, out: &mut Deltas) -> Result<(), Fault> {
        if self.reader.has_finished() {
            self.reader.end(out);
            return Ok(());
        }
        if self.has_event && !self.reader.has_choice() {
            return Err(Fault::new(FaultKind::BadWire, "the stream has no choices"));
        }
        Err(Fault::cut_off("the stream ended without a reason to finish"))
    }
}
