//! Anthropic's Messages API.

mod reply;
mod request;
mod stream;
mod turn;

use formwork::providers::Protocol as RawProtocol;

use super::base::{Protocol, functions_of_files};
use super::events::StreamEnd;
use crate::document::Document;

pub(super) use request::FIELDS;

/// The Messages API.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Anthropic;

impl Protocol for Anthropic {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn own(&self) -> (RawProtocol, &'static str) {
        (RawProtocol::Anthropic, "/v1/messages")
    }

    fn fields(&self) -> &'static [&'static str] {
        FIELDS
    }

    fn is_plain(&self, body: &Document<'_>) -> bool {
        (body.is_empty(["tools"]) || body.word(["tool_choice", "type"]) == Some("none"))
            && body.is_empty(["output_format"])
            && body.is_empty(["output_config", "format"])
    }

    fn texts(&self) -> &'static [(&'static str, &'static str, &'static str)] {
        &[("content_block_delta", "/delta", "text")]
    }

    fn end(&self) -> StreamEnd {
        StreamEnd { marks: &["message_stop"], is_long: false }
    }

    functions_of_files!();
}
