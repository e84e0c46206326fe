//! Anthropic's Messages API.

mod reply;
mod request;
mod stream;
mod turn;

use formwork::providers::Protocol as RawProtocol;

use super::base::{EVENTS, Protocol};
use super::events::StreamEnd;

pub(super) use request::FIELDS;

/// The Messages API.
pub(crate) static ANTHROPIC: Protocol = Protocol {
    name: "anthropic",
    own: (RawProtocol::Anthropic, "/v1/messages"),
    fields: FIELDS,
    has_wire: true,
    is_streamed: false,
    is_plain: |body| {
        (body.is_empty(["tools"]) || body.word(["tool_choice", "type"]) == Some("none"))
            && body.is_empty(["output_format"])
            && body.is_empty(["output_config", "format"])
    },
    ask: request::ask,
    reply: reply::whole,
    problem: reply::error,
    frames: stream::frames,
    read_whole: turn::whole,
    read_event: turn::event,
    set_text: turn::set_text,
    texts: &[("content_block_delta", "/delta", "text")],
    add_message: turn::add_message,
    set_format: turn::set_format,
    add_instructions: turn::add_instructions,
    sampling_at: "",
    end: StreamEnd { marks: &["message_stop"], is_long: false },
    stream_type: EVENTS,
};
