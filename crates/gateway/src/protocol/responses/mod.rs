//! OpenAI's Responses API.

mod reply;
mod request;
mod stream;
mod turn;

use formwork::providers::Protocol as RawProtocol;

use super::base::{EVENTS, Protocol};
use super::events::StreamEnd;

pub(super) use request::FIELDS;
pub(crate) use request::KEPT_BY_VENDOR;

/// The Responses API.
pub(crate) static RESPONSES: Protocol = Protocol {
    name: "responses",
    own: (RawProtocol::Responses, "/responses"),
    fields: FIELDS,
    has_wire: true,
    is_streamed: false,
    is_plain: |body| {
        (body.is_empty(["tools"]) || body.word(["tool_choice"]) == Some("none"))
            && matches!(body.word(["text", "format", "type"]), None | Some("text"))
    },
    ask: request::ask,
    reply: reply::whole,
    problem: reply::error,
    frames: stream::frames,
    read_whole: turn::whole,
    read_event: turn::event,
    set_text: turn::set_text,
    texts: &[
        ("response.output_text.delta", "", "delta"),
        ("response.output_text.done", "", "text"),
        ("response.content_part.done", "/part", "text"),
        ("response.output_item.done", "/item/content/0", "text"),
    ],
    add_message: turn::add_message,
    set_format: turn::set_format,
    add_instructions: turn::add_instructions,
    sampling_at: "",
    end: StreamEnd {
        marks: &["response.completed", "response.incomplete", "response.failed"],
        is_long: true,
    },
    stream_type: EVENTS,
};
