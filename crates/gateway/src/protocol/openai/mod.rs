//! OpenAI's Chat Completions.

mod reply;
mod request;
mod stream;
mod turn;

use formwork::providers::Protocol as RawProtocol;
use serde_json::Value;

use super::base::{Frames, Protocol};
use super::turn::Turn;
use crate::ask::Ask;
use crate::contracts::Known;
use crate::document::Document;
use crate::problem::Problem;
use crate::reply::{Meta, Reply};

pub(super) use reply::error;
pub(super) use request::FIELDS;
pub(super) use turn::add_message;

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

    fn is_plain(&self, body: &Document<'_>) -> bool {
        (body.is_empty(["tools"]) || body.word(["tool_choice"]) == Some("none"))
            && matches!(body.word(["response_format", "type"]), None | Some("text"))
    }

    fn ask(&self, body: Document<'_>, known: &Known) -> Result<Ask, Problem> {
        request::ask(body, known)
    }

    fn reply(&self, _: &Ask, reply: &Reply, meta: &Meta) -> Vec<u8> {
        reply::whole(reply, meta)
    }

    fn problem(&self, problem: &Problem) -> Value {
        reply::error(problem)
    }

    fn frames(&self, ask: &Ask, meta: &Meta) -> Box<dyn Frames> {
        stream::frames(ask, meta)
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
}
