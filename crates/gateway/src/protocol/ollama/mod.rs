//! Ollama's chat and generate APIs.

mod reply;
mod request;
mod stream;
mod turn;

use formwork::providers::Protocol as RawProtocol;

use super::base::{LINES, Protocol};
use super::events::StreamEnd;

pub(crate) use reply::timestamp;
pub(super) use request::{CHAT, GENERATE};

/// Ollama's `/api/chat`.
pub(crate) static OLLAMA: Protocol = Protocol {
    name: "ollama",
    own: (RawProtocol::Ollama, "/api/chat"),
    fields: CHAT,
    has_wire: true,
    is_streamed: true,
    is_plain: |body| body.is_empty(["tools"]) && body.is_empty(["format"]),
    ask: request::chat,
    reply: |reply, meta| reply::whole(true, reply, meta),
    problem: reply::error,
    frames: |ask, meta| stream::frames(true, ask, meta),
    read_whole: turn::whole,
    read_event: turn::event,
    set_text: turn::set_text,
    texts: &[("", "/message", "content"), ("", "", "response")],
    add_message: turn::add_message,
    set_format: turn::set_format,
    add_instructions: turn::add_instructions,
    sampling_at: "options.",
    end: StreamEnd { marks: &[r#""done":true"#, r#""done": true"#], is_long: false },
    stream_type: LINES,
};

/// Ollama's `/api/generate`.
pub(crate) static OLLAMA_GENERATE: Protocol = Protocol {
    own: (RawProtocol::Ollama, "/api/generate"),
    fields: GENERATE,
    has_wire: false,
    is_plain: |body| body.is_empty(["format"]),
    ask: request::generate,
    reply: |reply, meta| reply::whole(false, reply, meta),
    frames: |ask, meta| stream::frames(false, ask, meta),
    ..OLLAMA
};
