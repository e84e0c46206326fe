//! Streams of the Messages API.

use serde_json::{Value, json};

use super::reply::{error, head, stop_reason, thinking_block, usage};
use crate::ask::Ask;
use crate::problem::Problem;
use crate::protocol::base::Frames;
use crate::reply::{Choice, Content, Meta, Reply};

/// Returns the writer of a stream.
pub(super) fn frames(ask: &Ask, meta: &Meta) -> Box<dyn Frames> {
    Box::new(Events { meta: meta.clone(), called: ask.called(), sent: false, thinking: None })
}

/// The events of a stream.
struct Events {
    meta: Meta,
    /// The tool that is called, where that is known from the start.
    called: Option<String>,
    /// Whether the block of the content was started.
    sent: bool,
    /// Whether the block of the reasoning, the first one, is open; `None` without it.
    thinking: Option<bool>,
}

impl Events {
    /// Returns the events of a piece of a block, and the start of the block before its first one.
    fn piece(&self, at: (usize, usize), name: Option<&str>, text: &str, is_first: bool) -> Vec<Value> {
        let index = self.index(at.0);
        let (block, delta) = match name {
            Some(name) => (
                json!({"type": "tool_use", "id": self.meta.call_id("toolu_", 0, at.1), "name": name, "input": {}}),
                json!({"type": "input_json_delta", "partial_json": text}),
            ),
            None => (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": text})),
        };
        let start = json!({"type": "content_block_start", "index": index, "content_block": block});
        let delta = json!({"type": "content_block_delta", "index": index, "delta": delta});
        Some(start).filter(|_| is_first).into_iter().chain([delta]).collect()
    }

    /// Returns the number of a block of the answer.
    fn index(&self, nth: usize) -> usize {
        nth + usize::from(self.thinking.is_some())
    }

    /// Returns the end of the block of the reasoning, if it is open.
    fn end_thinking(&mut self) -> Vec<Value> {
        let is_open = self.thinking.as_mut().is_some_and(std::mem::take);
        if is_open { vec![json!({"type": "content_block_stop", "index": 0})] } else { Vec::new() }
    }
}

impl Frames for Events {
    fn open(&mut self) -> Vec<Value> {
        vec![json!({"type": "message_start", "message": head(&self.meta)})]
    }

    fn keep_alive(&self) -> Option<Value> {
        Some(json!({"type": "ping"}))
    }

    fn thinking(&mut self, text: &str) -> Vec<Value> {
        if self.sent || self.thinking == Some(false) {
            // The block has ended.
            return Vec::new();
        }
        let is_first = self.thinking.replace(true).is_none();
        let start = json!({"type": "content_block_start", "index": 0, "content_block": thinking_block("")});
        let delta = json!({"type": "thinking_delta", "thinking": text});
        let delta = json!({"type": "content_block_delta", "index": 0, "delta": delta});
        Some(start).filter(|_| is_first).into_iter().chain([delta]).collect()
    }

    fn text(&mut self, text: &str) -> Vec<Value> {
        let mut events = self.end_thinking();
        let is_first = !std::mem::replace(&mut self.sent, true);
        events.extend(self.piece((0, 0), self.called.as_deref(), text, is_first));
        events
    }

    fn close(&mut self, choice: &Choice, reply: &Reply) -> Vec<Value> {
        let content = &choice.content;
        let mut events = self.end_thinking();
        let first = self.index(0);
        let stop = |nth: usize| json!({"type": "content_block_stop", "index": first + nth});
        // The arguments of a call were sent before only if it was known from the start.
        let mut is_called = self.called.take().is_some() && self.sent;
        // Only a text may be empty.
        let is_there = self.sent || matches!(content, Content::Text(_)) || !content.text().is_empty();
        let has_text = is_there && !is_called;
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
