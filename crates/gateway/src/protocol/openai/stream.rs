//! Streams of Chat Completions.

use serde_json::{Value, json};

use super::reply::{finish, usage};
use crate::ask::Ask;
use crate::problem::Problem;
use crate::protocol::base::Frames;
use crate::reply::{Choice, Content, Meta, Reply};

/// Returns the writer of a stream.
pub(super) fn frames(ask: &Ask, meta: &Meta) -> Box<dyn Frames> {
    Box::new(Chunks {
        meta: meta.clone(),
        include_usage: ask.include_usage,
        called: ask.called(),
        index: 0,
        sent: false,
    })
}

/// The chunks of a stream.
struct Chunks {
    meta: Meta,
    include_usage: bool,
    /// The tool that is called, where that is known from the start.
    called: Option<String>,
    /// The number of the answer that is written.
    index: usize,
    /// Whether text was sent.
    sent: bool,
}

impl Chunks {
    fn chunk(&self, delta: &Value, finish: Option<&str>) -> Value {
        let choices =
            json!([{"index": self.index, "delta": delta, "logprobs": null, "finish_reason": finish}]);
        self.whole(&choices, &Value::Null)
    }

    fn whole(&self, choices: &Value, usage: &Value) -> Value {
        let Meta { model, created, .. } = &self.meta;
        let mut chunk = json!({
            "id": self.meta.id("chatcmpl-"), "object": "chat.completion.chunk", "created": created,
            "model": model, "system_fingerprint": null, "choices": choices,
        });
        if self.include_usage {
            chunk["usage"] = usage.clone();
        }
        chunk
    }

    /// Returns the chunks of a call: its name, and its arguments unless they come in pieces.
    fn call(&self, nth: usize, name: &str, arguments: Option<&str>) -> Vec<Value> {
        let head = json!({"tool_calls": [{
            "index": nth, "id": self.meta.call_id("call_", self.index, nth), "type": "function",
            "function": {"name": name, "arguments": ""},
        }]});
        let more = arguments.map(|text| self.arguments(nth, text));
        [self.chunk(&head, None)].into_iter().chain(more).collect()
    }

    fn arguments(&self, nth: usize, text: &str) -> Value {
        self.chunk(&json!({"tool_calls": [{"index": nth, "function": {"arguments": text}}]}), None)
    }
}

impl Chunks {
    /// Returns the chunks of an answer, without those that were sent before.
    fn answer(&mut self, choice: &Choice) -> Vec<Value> {
        let is_called = self.called.take().is_some();
        let mut events = Vec::new();
        match &choice.content {
            Content::Refusal(reason) if !self.sent => {
                events.push(self.chunk(&json!({"refusal": reason}), None));
            }
            Content::Text(text) if !self.sent => events = self.text(text),
            Content::Calls { text, calls } if !(is_called && self.sent) => {
                if !self.sent && !text.is_empty() {
                    events = self.text(text);
                }
                for (nth, call) in calls.iter().enumerate() {
                    events.extend(self.call(nth, &call.name, Some(&call.arguments)));
                }
            }
            _ => {}
        }
        events.push(self.chunk(&json!({}), Some(finish(choice.finish))));
        events
    }
}

impl Frames for Chunks {
    fn open(&mut self) -> Vec<Value> {
        let content = if self.called.is_some() { Value::Null } else { "".into() };
        vec![self.chunk(&json!({"role": "assistant", "content": content}), None)]
    }

    fn thinking(&mut self, text: &str) -> Vec<Value> {
        vec![self.chunk(&json!({"reasoning_content": text}), None)]
    }

    fn text(&mut self, text: &str) -> Vec<Value> {
        let is_first = !std::mem::replace(&mut self.sent, true);
        let Some(name) = &self.called else { return vec![self.chunk(&json!({"content": text}), None)] };
        if is_first { self.call(0, name, Some(text)) } else { vec![self.arguments(0, text)] }
    }

    fn close(&mut self, first: &Choice, reply: &Reply) -> Vec<Value> {
        let mut events = self.answer(first);
        for (nth, choice) in reply.choices.iter().enumerate().skip(1) {
            (self.index, self.sent) = (nth, false);
            events.extend(self.open());
            events.extend(self.answer(choice));
        }
        if self.include_usage {
            events.push(self.whole(&json!([]), &json!(usage(reply, &self.meta))));
        }
        events.push("[DONE]".into());
        events
    }

    fn fail(&mut self, problem: &Problem) -> Vec<Value> {
        vec![super::reply::error(problem)]
    }
}
