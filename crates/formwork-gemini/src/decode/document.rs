use formwork_core::{Fault, FaultKind};
use formwork_wire::{Deltas, lenient, quoted};
use serde_json::Value;

use super::reader::Reader;
use super::shape::Document;

/// Reads a response that is one document.
pub(super) fn document(reader: &mut Reader, body: &[u8], out: &mut Deltas) -> Result<(), Fault> {
    let bad = |message: String| Fault::new(FaultKind::BadWire, message);
    let quoted_body = || quoted(&String::from_utf8_lossy(body));
    let mut document = Document::default();
    lenient::read_slice(body, &mut document)
        .map_err(|_| bad(format!("the response is not JSON: {}", quoted_body())))?;
    for (place, response) in document.0.iter_mut().enumerate() {
        let whole = || match serde_json::from_slice(body).unwrap_or_default() {
            Value::Array(all) => all.into_iter().nth(place).unwrap_or_default(),
            whole => whole,
        };
        reader.take(response, whole, out)?;
    }
    if !reader.is_answer() {
        return Err(bad(format!("the response is not one of the Gemini API: {}", quoted_body())));
    }
    reader.end(out);
    Ok(())
}
