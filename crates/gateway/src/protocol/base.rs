//! A protocol, as the service needs it.

use formwork::providers::Protocol as RawProtocol;
use serde::Serialize;
use serde_json::{Value, json};

use super::events::{StreamEnd, document, split};
use super::turn::Turn;
use crate::ask::Ask;
use crate::contracts::Known;
use crate::document::{Document, Node};
use crate::problem::Problem;
use crate::reply::{Choice, Meta, Reply};

/// The media type of streams of lines.
pub(crate) const LINES: &str = "application/x-ndjson";

/// The media type of Server-Sent Events.
pub(crate) const EVENTS: &str = "text/event-stream";

/// A protocol that clients use. Its functions stand in the files of its folder: `request.rs`, `reply.rs`, `stream.rs` and `turn.rs`.
pub(crate) struct Protocol {
    /// The name in metrics and logs.
    pub(crate) name: &'static str,
    /// The protocol of servers that take its requests as they are, and the path there.
    pub(crate) own: (RawProtocol, &'static str),
    /// The names of the members that its requests have.
    pub(crate) fields: &'static [&'static str],
    /// Whether targets are called in it, as well as clients answered.
    pub(crate) has_wire: bool,
    /// Whether a request without the member `stream` asks for a stream.
    pub(crate) is_streamed: bool,
    /// Returns whether a request asks for nothing that would be validated.
    pub(crate) is_plain: fn(&Document<'_>) -> bool,
    /// Reads the body of a request. Schemas whose texts are known are not parsed again. An error names the member that is wrong.
    pub(crate) ask: fn(Document<'_>, &Known) -> Result<Ask, Problem>,
    /// Returns the body of a response.
    pub(crate) reply: fn(&Reply, &Meta) -> Vec<u8>,
    /// Returns the body of an error.
    pub(crate) problem: fn(&Problem) -> Value,
    /// Returns the writer of a streamed response.
    pub(crate) frames: fn(&Ask, &Meta) -> Box<dyn Frames>,
    /// Reads a whole response of the protocol.
    pub(crate) read_whole: fn(&mut Turn, &Value),
    /// Reads the next event or line of a stream of the protocol.
    pub(crate) read_event: fn(&mut Turn, &Value),
    /// Replaces the text of the answer with this number in a whole response.
    pub(crate) set_text: fn(&mut Value, u64, &str),
    /// The places of the text in the events of a stream: the type of an event (empty for all), the object, and its member.
    pub(crate) texts: &'static [(&'static str, &'static str, &'static str)],
    /// Adds a message of the user to a request.
    pub(crate) add_message: fn(&mut Value, &str),
    /// Sets the format of the answer of a request: its name and its schema.
    pub(crate) set_format: fn(&mut Value, &str, &Value),
    /// Adds instructions behind those of a request.
    pub(crate) add_instructions: fn(&mut Value, &str),
    /// The place of the object with the parameters of sampling, with a dot behind it; empty for the body itself.
    pub(crate) sampling_at: &'static str,
    /// The signs of the end of a stream.
    pub(crate) end: StreamEnd,
    /// The media type of streams.
    pub(crate) stream_type: &'static str,
}

impl Protocol {
    /// Returns whether a request asks for a stream.
    pub(crate) fn is_stream(&self, body: &Document<'_>) -> bool {
        match body.get(["stream"]) {
            Some(Node::Flag(is_stream)) => *is_stream,
            _ => self.is_streamed,
        }
    }

    /// Returns the turn of a response, as far as it can be read.
    pub(crate) fn turn_of(&self, bytes: &[u8], is_stream: bool) -> Turn {
        let mut turn = Turn::default();
        if is_stream {
            for event in split(bytes, self.stream_type == LINES) {
                (self.read_event)(&mut turn, &document(&event));
            }
        } else if let Ok(body) = serde_json::from_slice(bytes) {
            (self.read_whole)(&mut turn, &body);
        }
        turn
    }

    /// Replaces the text in an event of a stream; `given` has the types of events that have it already. Returns whether it was there.
    pub(crate) fn set_piece(&self, event: &mut Value, text: &str, given: &mut Vec<&'static str>) -> bool {
        if event["response"]["output"].is_array() {
            // The events at the beginning and the end of a stream of Responses.
            (self.set_text)(&mut event["response"], 0, text);
            return true;
        }
        let is_text = |place: &Value| place.as_str().is_some_and(|text| !text.is_empty());
        for (kind, at, name) in self.texts {
            let is_kind = kind.is_empty() || event["type"] == *kind;
            let Some(part) = event.pointer_mut(at).filter(|part| is_kind && is_text(&part[name])) else {
                continue;
            };
            part[name] = if given.contains(kind) { "" } else { text }.into();
            given.push(kind);
            for at in [*at, "", "/choices/0"] {
                // They are those of another text.
                match event.pointer_mut(at).and_then(|part| part.get_mut("logprobs")) {
                    Some(tokens @ Value::Array(_)) => *tokens = json!([]),
                    Some(tokens) => *tokens = Value::Null,
                    None => {}
                }
            }
            return true;
        }
        false
    }

    /// Adds texts and the answers to them in front of the dialogue of a request.
    pub(crate) fn add_examples(&self, body: &mut Value, examples: &[(String, Value)]) {
        let list = if body["input"].is_null() { "messages" } else { "input" };
        if examples.is_empty() {
            return;
        }
        if let text @ Value::String(_) = &mut body[list] {
            *text = json!([{"role": "user", "content": text.take()}]);
        }
        let Some(messages) = body[list].as_array_mut() else { return };
        let is_system = |message: &&Value| message["role"] == "system" || message["role"] == "developer";
        let leading = messages.iter().take_while(is_system).count();
        let examples = examples.iter().flat_map(|(input, output)| {
            [
                json!({"role": "user", "content": input}),
                json!({"role": "assistant", "content": output.to_string()}),
            ]
        });
        messages.splice(leading..leading, examples);
    }
}

/// Writes a response as a stream: [`open`](Self::open), any number of [`thinking`](Self::thinking) and [`text`](Self::text), and [`close`](Self::close) or
/// [`fail`](Self::fail).
pub(crate) trait Frames: Send + Sync {
    /// Returns the events that are sent before the answer begins.
    fn open(&mut self) -> Vec<Value> {
        Vec::new()
    }

    /// Returns the event that keeps the connection alive while there is nothing to send; `None` for a comment.
    fn keep_alive(&self) -> Option<Value> {
        None
    }

    /// Returns a piece of the model's reasoning, before the answer; nothing where the protocol has no place for it.
    fn thinking(&mut self, _text: &str) -> Vec<Value> {
        Vec::new()
    }

    /// Returns a piece of the answer.
    fn text(&mut self, text: &str) -> Vec<Value>;

    /// Returns the rest: the answer, unless its text was sent in pieces before, and the end.
    fn close(&mut self, choice: &Choice, reply: &Reply) -> Vec<Value>;

    /// Returns the protocol's error, which ends the stream.
    fn fail(&mut self, problem: &Problem) -> Vec<Value>;
}

/// Returns a document as text.
pub(super) fn to_json(document: &impl Serialize) -> Vec<u8> {
    /// Most responses fit, which saves reallocations.
    const BYTES: usize = 1024;

    let mut text = Vec::with_capacity(BYTES);
    // Neither the writer nor the types of responses fail.
    _ = serde_json::to_writer(&mut text, document);
    text
}

/// Returns the events of a stream of a media type as bytes: as lines, or as Server-Sent Events with the name that is their `type`.
pub(crate) fn written(events: &[Value], media_type: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for event in events {
        if media_type == LINES {
            out.extend([to_json(event).as_slice(), b"\n"].concat());
            continue;
        }
        if let Some(name) = event["type"].as_str() {
            out.extend_from_slice(format!("event: {name}\n").as_bytes());
        }
        let data = event.as_str().map_or_else(|| to_json(event), |mark| mark.as_bytes().to_vec());
        out.extend([b"data: ", data.as_slice(), b"\n\n"].concat());
    }
    out
}
