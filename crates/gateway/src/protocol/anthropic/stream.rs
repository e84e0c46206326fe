//! Streams of the Messages API.

use serde_json::{Value, json};

use super::reply::{error, head, stop_reason, usage};
use crate::ask::Ask;
use crate::problem::Problem;
use crate::protocol::base::Frames;
use crate::reply::{Choice, Content, Meta, Reply};

/// Returns the writer of a stream.
pub(super) fn frames(ask: &Ask, meta: &Meta) -> Box<dyn Frames> {
    Box::new(Events { meta: meta.clone(), called: ask.called(), sent: false })
}

/// The events of a stream.
struct Events {
    meta: Meta,
    /// The tool that is called, where that is known from the start.
    called: Option<String>,
    /// Whether the block of the content was started.
    sent: bool,
}

impl Events {
    /// Returns the events of a piece of a block, and the start of the block before its first one.
    fn piece(&self, at: (usize, usize), name: Option<&str>, text: &str, is_first: bool) -> Vec<Value> {
        let (block, delta) = match name {
            Some(name) => (
                json!({"type": "tool_use", "id": self.meta.call_id("toolu_", 0, at.1), "name": name, "input": {}}),
                json!({"type": "input_json_delta", "partial_json": text}),
            ),
            None => (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": text})),
        };
        let start = json!({"type": "content_block_start", "index": at.0, "content_block": block});
        let delta = json!({"type": "content_block_delta", "index": at.0, "delta": delta});
        Some(start).filter(|_| is_first).into_iter().chain([delta]).collect()
    }
}

impl Frames for Events {
    fn open(&mut self) -> Vec<Value> {
        vec![json!({"type": "message_start", "message": head(&self.meta)})]
    }

    fn keep_alive(&self) -> Option<Value> {
        Some(json!({"type": "ping"}))
    }

    fn text(&mut self, text: &str) -> Vec<Value> {
        let is_first = !std::mem::replace(&mut self.sent, true);
        self.piece((0, 0), self.called.as_deref(), text, is_first)
    }

    fn close(&mut self, choice: &Choice, reply: &Reply) -> Vec<Value> {
        let content = &choice.content;
        let stop = |index: usize| json!({"type": "content_block_stop", "index": index});
        let mut events = Vec::new();
        // The arguments of a call were sent before only if it was known from the start.
        let mut is_called = self.called.take().is_some() && self.sent;
        let has_text = match content {
            Content::Calls { text, .. } => !is_called && (self.sent || !text.is_empty()),
            _ => true,
        };
        if has_text {
            if !self.sent {
                events.extend(self.piece((0, 0), None, content.text(), true));
            }
            events.push(stop(0));
        }
        for (nth, called) in content.calls().iter().enumerate() {
            let at = (nth + usize::from(has_text), nth);
            if !std::mem::take(&mut is_called) {
                events.extend(self.piece(at, Some(&called.name), &called.arguments, true));
            }
            events.push(stop(at.0));
        }
        events.extend([
            json!({
                "type": "message_delta",
                "delta": {"stop_reason": stop_reason(choice.finish), "stop_sequence": null},
                "usage": usage(reply, &self.meta),
            }),
            json!({"type": "message_stop"}),
        ]);
        events
    }

    fn fail(&mut self, problem: &Problem) -> Vec<Value> {
        vec![error(problem)]
    }
}
