use formwork_core::{Fault, FaultKind};
use formwork_wire::{Deltas, error_in, quoted};
use serde_json::Value;

use super::reader::Reader;

/// Reads a response that is one JSON document.
pub(crate) fn document(reader: &mut Reader, body: &[u8], out: &mut Deltas) -> Result<(), Fault> {
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
        return reader.broken(&response, out);
    }
    if !is_response {
        return Err(bad("the response is not one of the Responses API: it has no `output`"));
    }
    let status = response["status"].as_str().unwrap_or_default();
    reader.finish(&response, status, out)
}
