//! OpenAI's Chat Completions.

mod reply;
mod request;
mod stream;
mod turn;

use formwork::providers::Protocol as RawProtocol;

use super::base::{EVENTS, Protocol};
use super::events::StreamEnd;

pub(super) use reply::error;
pub(super) use request::{FIELDS, SETTINGS};
pub(super) use turn::{add_instructions, add_message, is_message};

/// Chat Completions.
pub(crate) static OPENAI: Protocol = Protocol {
    name: "openai",
    own: (RawProtocol::OpenAi, "/chat/completions"),
    fields: FIELDS,
    has_wire: true,
    is_streamed: false,
    is_plain: |body| {
        (body.is_empty(["tools"]) || body.word(["tool_choice"]) == Some("none"))
            && matches!(body.word(["response_format", "type"]), None | Some("text"))
    },
    ask: request::ask,
    reply: reply::whole,
    problem: reply::error,
    frames: stream::frames,
    read_whole: turn::whole,
    read_event: turn::event,
    set_text: turn::set_text,
    texts: &[("", "/choices/0/delta", "content")],
    add_message: turn::add_message,
    set_format: turn::set_format,
    add_instructions: turn::add_instructions,
    sampling_at: "",
    end: StreamEnd { marks: &["[DONE]"], is_long: false },
    stream_type: EVENTS,
};
