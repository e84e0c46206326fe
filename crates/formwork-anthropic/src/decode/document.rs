use formwork_core::{Fault, FaultKind};
use formwork_wire::{Bytes, Collected, Decoder, Deltas, quoted};

use super::reader::Reader;
use super::shape::Message;

/// Returns the decoder of a response that is one document.
pub(super) fn document(reader: Reader) -> Box<dyn Decoder> {
    Box::new(Document { body: Collected::new(), reader })
}

struct Document {
    body: Collected,
    reader: Reader,
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
        let body = self.body.as_slice();
        let bad = |what: &str| {
            let message = format!("{what}: {}", quoted(&String::from_utf8_lossy(body)));
            Fault::new(FaultKind::BadWire, message)
        };
        let message: Message =
            serde_json::from_slice(body).map_err(|_| bad("the response is not one of the Messages API"))?;
        if let Some(error) = message.error {
            return Err(self.reader.broken_off(error));
        }
        let Some(content) = message.content else { return Err(bad("the response has no content")) };
        if let Some(usage) = message.usage {
            self.reader.count(usage);
        }
        self.reader.answered_by(message.model);
        for block in content {
            self.reader.block(block, out);
        }
        self.reader.stop(message.stop_reason, message.stop_details);
        self.reader.end(out);
        Ok(())
    }
}
