//! OpenAI's Responses API.

mod reply;
mod request;
mod stream;
mod turn;

use formwork::providers::Protocol as RawProtocol;

use super::base::{Protocol, functions_of_files};
use super::events::StreamEnd;
use crate::document::Document;

pub(super) use request::FIELDS;

/// The Responses API.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Responses;

impl Protocol for Responses {
    fn name(&self) -> &'static str {
        "responses"
    }

    fn own(&self) -> (RawProtocol, &'static str) {
        (RawProtocol::Responses, "/responses")
    }

    fn fields(&self) -> &'static [&'static str] {
        FIELDS
    }

    fn is_plain(&self, body: &Document<'_>) -> bool {
        (body.is_empty(["tools"]) || body.word(["tool_choice"]) == Some("none"))
            && matches!(body.word(["text", "format", "type"]), None | Some("text"))
    }

    fn texts(&self) -> &'static [(&'static str, &'static str, &'static str)] {
        &[
            ("response.output_text.delta", "", "delta"),
            ("response.output_text.done", "", "text"),
            ("response.content_part.done", "/part", "text"),
            ("response.output_item.done", "/item/content/0", "text"),
        ]
    }

    fn end(&self) -> StreamEnd {
        StreamEnd { marks: &["response.completed", "response.incomplete", "response.failed"], is_long: true }
    }

    functions_of_files!();
}
