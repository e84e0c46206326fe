use formwork_core::{Fault, FaultKind};
use formwork_wire::{Bytes, Collected, Decoder, Deltas, quoted};

use super::object::Maybe;
use super::reader::{Framing, Reader};

/// A response that is one document.
pub(super) struct Document {
    body: Collected,
    reader: Reader,
}

impl Document {
    pub(super) const fn new(reader: Reader) -> Self {
        Self { body: Collected::new(), reader }
    }
}

impl Decoder for Document {
    fn push(&mut self, chunk: &[u8], _: &mut Deltas) -> Result<(), Fault> {
        self.body.push(chunk);
        Ok(())
    }

    fn push_bytes(&mut self, chunk: Bytes, _: &mut Deltas) -> Result<(), Fault> {
        self.body.push_bytes(chunk);
        Ok(())
    }

    fn end(&mut self, out: &mut Deltas) -> Result<(), Fault> {
        let bad = |message: String| Fault::new(FaultKind::BadWire, message);
        let body = self.body.as_slice();
        if body.trim_ascii().is_empty() {
            return Err(bad("the server answered with nothing".to_owned()));
        }
        let said = || quoted(&String::from_utf8_lossy(body));
        let Maybe(shape) =
            serde_json::from_slice(body).map_err(|_| bad(format!("the answer is not JSON: {}", said())))?;
        if self.reader.take(shape.unwrap_or_default(), body, Framing::Document, out)? {
            return Ok(());
        }
        if !self.reader.has_choice() {
            return Err(bad(format!("the answer has no choices: {}", said())));
        }
        self.reader.end(out);
        Ok(())
    }
}
