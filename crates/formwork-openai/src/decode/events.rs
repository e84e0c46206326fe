use formwork_core::{Fault, FaultKind};
use formwork_wire::{Deltas, Messages, quoted};

use super::object::Maybe;
use super::reader::{Reader, Said};

/// The events of a stream, `[DONE]` at its end.
pub(super) struct Events(Reader);

impl Events {
    pub(super) const fn new(reader: Reader) -> Self {
        Self(reader)
    }
}

impl Messages for Events {
    fn message(&mut self, text: &str, out: &mut Deltas) -> Result<(), Fault> {
        let bad = |message: String| Fault::new(FaultKind::BadWire, message);
        match text.trim() {
            // sent to keep the connection
            "" => Ok(()),
            "[DONE]" if self.0.has_choice() => {
                self.0.end(out);
                Ok(())
            }
            "[DONE]" => Err(bad("the stream ended before it began".to_owned())),
            text => {
                let Maybe(shape) = serde_json::from_str(text)
                    .map_err(|_| bad(format!("an event of the stream is not JSON: {}", quoted(text))))?;
                self.0.take(shape.unwrap_or_default(), text.as_bytes(), Said::Chunk, out).map(|_| ())
            }
        }
    }

    /// Some servers leave out `[DONE]`. Who gave a reason to finish was done; who did not was cut off.
    fn end(&mut self, out: &mut Deltas) -> Result<(), Fault> {
        if self.0.has_finished() {
            self.0.end(out);
            return Ok(());
        }
        Err(Fault::new(
            FaultKind::BadWire,
            "the answer was cut off: the stream ended without a reason to finish",
        ))
    }
}
