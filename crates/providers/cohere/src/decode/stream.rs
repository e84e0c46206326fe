//! Reads the events of a streamed answer.

use formwork_core::{Fault, ToolCall, Usage};
use formwork_wire::lenient::{Leaf, Object};
use formwork_wire::{CallShape, Collector, Deltas, Messages, RequestInfo, ToolInput, bad_wire, lenient};
use serde::Deserialize;
use serde_json::json;

use super::{Counts, finish};

/// An event. Its `type` is read only where the members of its `delta` do not say the same.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Leaf<'a>,
    delta: Object<Change<'a>>,
    error: Leaf<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Change<'a> {
    #[serde(borrow)]
    message: Object<Piece<'a>>,
    finish_reason: Leaf<'a>,
    usage: Object<Counts>,
    /// The message about an error that ended the answer.
    error: Leaf<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Piece<'a> {
    #[serde(borrow)]
    content: Object<Content<'a>>,
    /// One call, and not a list.
    tool_calls: Object<CallShape<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Content<'a> {
    #[serde(borrow)]
    text: Leaf<'a>,
    thinking: Leaf<'a>,
}

/// A call whose end has not arrived.
struct Open {
    id: String,
    name: String,
    /// Whether its arguments are the document.
    is_carrier: bool,
    input: ToolInput,
}

/// Reads an answer, whole or streamed. A stream ends with `message-end`.
pub(crate) struct ChatReader {
    pub(super) collector: Collector,
    open: Option<Open>,
    has_event: bool,
}

impl ChatReader {
    pub(crate) const fn new(request: RequestInfo) -> Self {
        Self { collector: Collector::new(request), open: None, has_event: false }
    }

    fn begin(&mut self, call: &CallShape<'_>, out: &mut Deltas) {
        self.close(out);
        let function = call.function.0.as_ref();
        let name = function.and_then(|function| function.name.as_str()).unwrap_or_default().to_owned();
        let is_carrier = self.collector.request.carrier.as_ref() == Some(&name) && !self.collector.is_carried;
        self.collector.is_carried |= is_carrier;
        let id = call.id.as_str().unwrap_or_default().to_owned();
        self.open = Some(Open { id, name, is_carrier, input: ToolInput::default() });
    }

    fn more(&mut self, call: &CallShape<'_>, out: &mut Deltas) {
        let piece = call.function.0.as_ref().and_then(|function| function.arguments.as_str());
        let Some((open, piece)) = self.open.as_mut().zip(piece) else { return };
        if open.is_carrier {
            let passed = open.input.push(piece);
            self.collector.answer(passed, out);
        } else {
            open.input.hold(piece);
            self.collector.hold(piece.len());
        }
    }

    fn close(&mut self, out: &mut Deltas) {
        let Some(Open { id, name, is_carrier, input }) = self.open.take() else { return };
        if is_carrier {
            self.collector.answer(input.rest(), out);
        } else if self.collector.request.carrier.is_none() {
            self.collector.call(ToolCall::new(id, name, input.rest()), out);
        }
    }
}

impl Messages for ChatReader {
    fn message(&mut self, text: &str, out: &mut Deltas) -> Result<(), Fault> {
        let event: Event<'_> = lenient::from_str(text)
            .map_err(|_| bad_wire("an event of the stream is not one of the chat API", text.as_bytes()))?;
        if !event.error.is_none() {
            return Err(self.collector.broken(&json!({"error": event.error})));
        }
        self.has_event = true;
        let kind = event.kind.as_str().unwrap_or_default();
        let Change { message, finish_reason, usage, error } = event.delta.0.unwrap_or_default();
        let Piece { content, tool_calls } = message.0.unwrap_or_default();
        if let Some(content) = content.0 {
            self.collector.thought(content.thinking.into_text().unwrap_or_default(), out);
            self.collector.text(content.text.into_text().unwrap_or_default(), out);
        }
        if let Some(call) = tool_calls.0 {
            if kind == "tool-call-start" {
                self.begin(&call, out);
            }
            self.more(&call, out);
        }
        if kind == "message-end" {
            self.close(out);
            let reason = finish_reason.as_str().unwrap_or_default();
            self.collector.stopped(finish(reason, error.as_str().unwrap_or_default())?);
            self.collector.usage = usage.0.and_then(|counts| counts.usage());
            self.collector.end(out);
        }
        Ok(())
    }

    fn usage(&self) -> Option<Usage> {
        self.collector.so_far()
    }

    /// Ends a stream without `message-end`: it was cut off.
    fn end(&mut self, _: &mut Deltas) -> Result<(), Fault> {
        let what = if self.has_event {
            "the stream ended without `message-end`"
        } else {
            "the stream has no events"
        };
        Err(Fault::cut_off(what))
    }
}
