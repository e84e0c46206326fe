//! Ollama's chat and generate APIs.

mod reply;
mod request;
mod stream;
mod turn;

use formwork::providers::Protocol as RawProtocol;
use serde_json::Value;

use super::base::{Frames, LINES, Protocol};
use super::turn::Turn;
use crate::ask::Ask;
use crate::contracts::Known;
use crate::document::{Document, Node};
use crate::problem::Problem;
use crate::reply::{Meta, Reply};

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

    fn is_plain(&self, body: &Document<'_>) -> bool {
        (*self == Self::Generate || body.is_empty(["tools"])) && body.is_empty(["format"])
    }

    fn is_stream(&self, body: &Document<'_>) -> bool {
        body.get(["stream"]) != Some(&Node::Scalar(Value::Bool(false)))
    }

    fn ask(&self, body: Document<'_>, known: &Known) -> Result<Ask, Problem> {
        request::ask(*self, body, known)
    }

    fn reply(&self, _: &Ask, reply: &Reply, meta: &Meta) -> Vec<u8> {
        reply::whole(*self, reply, meta)
    }

    fn problem(&self, problem: &Problem) -> Value {
        reply::error(problem)
    }

    fn frames(&self, ask: &Ask, meta: &Meta) -> Box<dyn Frames> {
        stream::frames(*self, ask, meta)
    }

    fn read_whole(&self, turn: &mut Turn, body: &Value) {
        turn::read(turn, body);
    }

    fn read_event(&self, turn: &mut Turn, data: &Value) {
        turn::read(turn, data);
    }

    fn set_text(&self, body: &mut Value, answer: u64, text: &str) {
        turn::set_text(body, answer, text);
    }

    fn add_message(&self, body: &mut Value, text: &str) {
        turn::add_message(body, text);
    }

    fn sampling_at(&self) -> &'static str {
        "options."
    }

    fn stream_type(&self) -> &'static str {
        LINES
    }
}
