use formwork_core::{Fault, FaultKind};
use formwork_wire::{Deltas, Messages, lenient, quoted};

use super::reader::Reader;
use super::shape::Response;

/// Reads the events of a stream. The stream has no end marker; its last event has a `finishReason`.
pub(super) struct Events {
    reader: Reader,
    has_event: bool,
}

impl Events {
    pub(super) const fn new(reader: Reader) -> Self {
        Self { reader, has_event: false }
    }
}

impl Messages for Events {
    fn message(&mut self, text: &str, out: &mut Deltas) -> Result<(), Fault> {
        // Empty events are keep-alives. Only proxies send `[DONE]`.
        if matches!(text.trim(), "" | "[DONE]") {
            return Ok(());
        }
        let mut event = Response::default();
        lenient::read_str(text, &mut event).map_err(|_| {
            Fault::new(FaultKind::BadWire, format!("an event of the stream is not JSON: {}", quoted(text)))
        })?;
        self.has_event = true;
        self.reader.take(&mut event, || serde_json::from_str(text).unwrap_or_default(), out)
    }

    fn end(&mut self, out: &mut Deltas) -> Result<(), Fault> {
        if self.reader.has_finished() {
            self.reader.end(out);
            return Ok(());
        }
        if self.has_event && !self.reader.is_answer() {
            return Err(Fault::new(FaultKind::BadWire, "the stream has no candidates"));
        }
        Err(Fault::cut_off("the stream ended without a `finishReason`"))
    }
}
