//! Responses into pieces of an answer.

mod document;
mod events;
mod reader;
mod shape;

use formwork_wire::http::response::Parts;
use formwork_wire::{Decoder, Framed, Sse, media_type};

use crate::fault::Asked;
use document::document;
use events::Events;
use reader::Reader;

/// Returns the decoder of a successful response: events, or one document, by its media type.
pub(crate) fn decoder(asked: Asked, head: &Parts) -> Box<dyn Decoder> {
    let reader = Reader::new(asked);
    if media_type(head).is_some_and(|name| name.eq_ignore_ascii_case("text/event-stream")) {
        Box::new(Framed::<Sse, _>::new(Events::new(reader)))
    } else {
        document(reader)
    }
}
