use formwork_core::{Fault, FaultKind};
use formwork_wire::{Bytes, Collected, Decoder, Deltas, error_in, quoted};
use serde_json::Value;

use super::reader::Reader;

/// A response that is one document.
pub(crate) struct Document {
    body: Collected,
    reader: Reader,
}

impl Document {
    pub(crate) const fn new(reader: Reader) -> Self {
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
        let body = self.body.as_slice();
        if body.trim_ascii().is_empty() {
            return Err(Fault::new(FaultKind::BadWire, "the server sent an empty response"));
        }
        let bad = |what: &str| {
            let message = format!("{what}: {}", quoted(&String::from_utf8_lossy(body)));
            Fault::new(FaultKind::BadWire, message)
        };
        let response: Value = serde_json::from_slice(body).map_err(|_| bad("the response is not JSON"))?;
        let is_response = response["output"].is_array() || response["object"] == "response";
        if !is_response && error_in(&response).is_some() {
            return self.reader.broken(&response, out);
        }
        if !is_response {
            return Err(bad("the response is not one of the Responses API: it has no `output`"));
        }
        let status = response["status"].as_str().unwrap_or_default();
        self.reader.finish(&response, status, out)
    }
}
