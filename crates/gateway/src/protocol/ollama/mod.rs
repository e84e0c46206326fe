//! Ollama's chat and generate APIs.

mod reply;
mod request;
mod stream;
mod turn;

use formwork::providers::Protocol as RawProtocol;

use super::base::{LINES, Protocol, functions_of_files};
use super::events::StreamEnd;
use crate::document::{Document, Node};

pub(crate) use reply::timestamp;
pub(super) use request::{CHAT, GENERATE};

/// Ollama's API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ollama {
    /// `/api/chat`.
    Chat,
    /// `/api/generate`.
    Generate,
}

impl Protocol for Ollama {
    fn name(&self) -> &'static str {
        "ollama"
    }

    fn own(&self) -> (RawProtocol, &'static str) {
        let path = match self {
            Self::Chat => "/api/chat",
            Self::Generate => "/api/generate",
        };
        (RawProtocol::Ollama, path)
    }

    fn has_wire(&self) -> bool {
        *self == Self::Chat
    }

    fn fields(&self) -> &'static [&'static str] {
        match self {
            Self::Chat => CHAT,
            Self::Generate => GENERATE,
        }
    }

    fn is_plain(&self, body: &Document<'_>) -> bool {
        (*self == Self::Generate || body.is_empty(["tools"])) && body.is_empty(["format"])
    }

    fn is_stream(&self, body: &Document<'_>) -> bool {
        body.get(["stream"]) != Some(&Node::Flag(false))
    }

    fn texts(&self) -> &'static [(&'static str, &'static str, &'static str)] {
        &[("", "/message", "content"), ("", "", "response")]
    }

    fn end(&self) -> StreamEnd {
        StreamEnd { marks: &[r#""done":true"#, r#""done": true"#], is_long: false }
    }

    functions_of_files!();

    fn sampling_at(&self) -> &'static str {
        "options."
    }

    fn stream_type(&self) -> &'static str {
        LINES
    }
}
