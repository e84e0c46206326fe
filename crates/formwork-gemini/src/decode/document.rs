use formwork_core::{Fault, FaultKind};
use formwork_wire::{Deltas, quoted};
use serde_json::Value;

use super::reader::Reader;

/// Reads a response that is one document, or an array of documents (the format of a stream without `alt=sse`).
pub(super) fn document(reader: &mut Reader, body: &[u8], out: &mut Deltas) -> Result<(), Fault> {
    let bad = |message: String| Fault::new(FaultKind::BadWire, message);
    let quoted_body = || quoted(&String::from_utf8_lossy(body));
    let document: Value = serde_json::from_slice(body)
        .map_err(|_| bad(format!("the response is not JSON: {}", quoted_body())))?;
    match &document {
        Value::Array(documents) => {
            documents.iter().try_for_each(|document| reader.take(document, out))?;
        }
        document => reader.take(document, out)?,
    }
    if !reader.is_answer() {
        return Err(bad(format!("the response is not one of the Gemini API: {}", quoted_body())));
    }
    reader.end(out);
    Ok(())
}
