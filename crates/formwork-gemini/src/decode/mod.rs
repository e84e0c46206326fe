//! Decodes responses into deltas.

mod document;
mod events;
mod reader;
mod shape;

use formwork_wire::http::response::Parts;
use formwork_wire::{Decoder, Deltas, Framed, Sse, Whole, media_type};

use crate::fault::RequestInfo;
use document::document;
use events::Events;
use reader::Reader;

/// Returns the decoder of a successful response: an event stream or one JSON document, by its media type. A proxy may send a
/// document although a stream was requested.
pub(crate) fn decoder(request: RequestInfo, head: &Parts) -> Box<dyn Decoder> {
    let mut reader = Reader::new(request);
    let is_stream = media_type(head).is_some_and(|name| name.eq_ignore_ascii_case("text/event-stream"));
    if is_stream {
        Box::new(Framed::<Sse, _>::new(Events::new(reader)))
    } else {
        Box::new(Whole::new(move |body: &[u8], out: &mut Deltas| document(&mut reader, body, out)))
    }
}
