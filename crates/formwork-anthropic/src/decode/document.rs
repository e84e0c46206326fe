use formwork_core::{Fault, FaultKind};
use formwork_wire::{Deltas, lenient, quoted};

use super::reader::Reader;
use super::shape::Message;

/// Reads a response that is one JSON document.
pub(super) fn document(reader: &mut Reader, body: &[u8], out: &mut Deltas) -> Result<(), Fault> {
    let bad = |what: &str| {
        let message = format!("{what}: {}", quoted(&String::from_utf8_lossy(body)));
        Fault::new(FaultKind::BadWire, message)
    };
    let mut message = Message::default();
    lenient::read_slice(body, &mut message)
        .map_err(|_| bad("the response is not a message of the Messages API"))?;
    if !message.error.is_none() {
        return Err(reader.broken_off(&message.error));
    }
    let Some(content) = message.content else { return Err(bad("the response has no `content`")) };
    reader.count(message.usage);
    reader.answered_by(message.model);
    for block in content {
        reader.block(block, out);
    }
    reader.stop(message.stop_reason, message.stop_details);
    reader.end(out);
    Ok(())
}
