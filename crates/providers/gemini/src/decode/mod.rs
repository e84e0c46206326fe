//! Decodes responses into deltas.

mod reader;
mod shape;

use formwork_wire::http::response::Parts;
use formwork_wire::{Decoder, RequestInfo, Sse, media_type};

use reader::ContentReader;

/// Returns the decoder of a successful response: an event stream or one JSON document, by its media type. A proxy may send a
/// document although a stream was requested.
pub(crate) fn decoder(request: RequestInfo, head: &Parts) -> Box<dyn Decoder> {
    let is_stream = media_type(head).is_some_and(|name| name.eq_ignore_ascii_case("text/event-stream"));
    formwork_wire::decoder::<Sse>(ContentReader::new(request), is_stream)
}
