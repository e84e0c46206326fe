use formwork_core::{Fault, FaultKind};
use formwork_wire::{Deltas, error_in, lenient, quoted};
use serde_json::Value;

use super::reader::Reader;
use super::shape::Response;

/// Reads a response that is one JSON document.
pub(crate) fn document(reader: &mut Reader, body: &[u8], out: &mut Deltas) -> Result<(), Fault> {
    if body.trim_ascii().is_empty() {
        return Err(Fault::new(FaultKind::BadWire, "the server sent an empty response"));
    }
    let bad = |what: &str| {
        let message = format!("{what}: {}", quoted(&String::from_utf8_lossy(body)));
        Fault::new(FaultKind::BadWire, message)
    };
    let mut response = Response::default();
    lenient::read_slice(body, &mut response).map_err(|_| bad("the response is not JSON"))?;
    if response.output.is_none() && response.object.as_str() != Some("response") {
        let whole: Value = serde_json::from_slice(body).unwrap_or_default();
        if error_in(&whole).is_some() {
            return reader.broken(&whole, out);
        }
        return Err(bad("the response is not one of the Responses API: it has no `output`"));
    }
    let status = response.status.take();
    reader.finish(&mut response, status.as_str().unwrap_or_default(), out)
}
