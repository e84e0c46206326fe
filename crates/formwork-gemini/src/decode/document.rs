use formwork_core::{Fault, FaultKind};
use formwork_wire::{Bytes, Collected, Decoder, Deltas, quoted};
use serde_json::Value;

use super::reader::Reader;

/// Reads a response that is one document, or an array of them, which a stream is without `alt=sse`.
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
        let said = || quoted(&String::from_utf8_lossy(body));
        let document: Value =
            serde_json::from_slice(body).map_err(|_| bad(format!("the answer is not JSON: {}", said())))?;
        match &document {
            Value::Array(documents) => {
                documents.iter().try_for_each(|document| self.reader.take(document, out))?;
            }
            document => self.reader.take(document, out)?,
        }
        if !self.reader.is_answer() {
            return Err(bad(format!("the answer is not Gemini's: {}", said())));
        }
        self.reader.end(out);
        Ok(())
    }
}
