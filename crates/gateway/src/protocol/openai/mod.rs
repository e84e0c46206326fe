//! OpenAI's Chat Completions.

mod reply;
mod request;
mod stream;
mod turn;

use formwork::providers::Protocol as RawProtocol;

use super::base::{Protocol, functions_of_files};
use super::events::StreamEnd;
use crate::document::Document;

pub(super) use reply::error;
pub(super) use request::{FIELDS, SETTINGS};
pub(super) use turn::{add_instructions, add_message, is_message};

/// Chat Completions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenAi;

impl Protocol for OpenAi {
    fn name(&self) -> &'static str {
        "openai"
    }

    fn own(&self) -> (RawProtocol, &'static str) {
        (RawProtocol::OpenAi, "/chat/completions")
    }

    fn fields(&self) -> &'static [&'static str] {
        FIELDS
    }

    fn is_plain(&self, body: &Document<'_>) -> bool {
        (body.is_empty(["tools"]) || body.word(["tool_choice"]) == Some("none"))
            && matches!(body.word(["response_format", "type"]), None | Some("text"))
    }

    fn texts(&self) -> &'static [(&'static str, &'static str, &'static str)] {
        &[("", "/choices/0/delta", "content")]
    }

    fn end(&self) -> StreamEnd {
        StreamEnd { marks: &["[DONE]"], is_long: false }
    }

    functions_of_files!();
}
