use formwork_core::{Fault, FaultKind};
use formwork_wire::{Deltas, lenient, quoted};

use super::reader::{Framing, Reader};
use super::shape::Shape;

/// Reads a response that is one JSON document.
pub(super) fn document(reader: &mut Reader, body: &[u8], out: &mut Deltas) -> Result<(), Fault> {
    let bad = |message: String| Fault::new(FaultKind::BadWire, message);
    if body.trim_ascii().is_empty() {
        return Err(bad("the server sent an empty response".to_owned()));
    }
    let body_text = || quoted(&String::from_utf8_lossy(body));
    let mut shape = Shape::default();
    lenient::read_slice(body, &mut shape)
        .map_err(|_| bad(format!("the response is not JSON: {}", body_text())))?;
    if reader.take(&mut shape, body, Framing::Document, out)? {
        return Ok(());
    }
    if !reader.has_choice() {
        return Err(bad(format!("the response has no `choices`: {}", body_text())));
    }
    reader.end(out);
    Ok(())
}
