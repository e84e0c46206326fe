//! Anthropic's Messages API.

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

    fn is_plain(&self, body: &Document<'_>) -> bool {
        (body.is_empty(["tools"]) || body.word(["tool_choice", "type"]) == Some("none"))
            && body.is_empty(["output_format"])
            && body.is_empty(["output_config", "format"])
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
        turn::whole(turn, body);
    }

    fn read_event(&self, turn: &mut Turn, data: &Value) {
        turn::event(turn, data);
    }

    fn set_text(&self, body: &mut Value, answer: u64, text: &str) {
        turn::set_text(body, answer, text);
    }

    fn add_message(&self, body: &mut Value, text: &str) {
        turn::add_message(body, text);
    }
}
