//! Streams of the Responses API.

use serde_json::{Value, json};

use super::reply::{call_item, document, error, head, message_item, part};
use crate::ask::Ask;
use crate::problem::{Kind, Problem};
use crate::protocol::base::Frames;
use crate::reply::{Called, Choice, Content, Meta, Reply};

/// Returns the writer of a stream.
pub(super) fn frames(ask: &Ask, meta: &Meta) -> Box<dyn Frames> {
    Box::new(Events {
        meta: meta.clone(),
        called: ask.called(),
        text: String::new(),
        is_started: false,
        number: 0,
        out: Vec::new(),
    })
}

/// The events of a stream.
struct Events {
    meta: Meta,
    /// The tool that is called, where that is known from the start.
    called: Option<String>,
    /// The text so far, which the last events repeat.
    text: String,
    is_started: bool,
    number: u64,
    /// The events that are not sent yet.
    out: Vec<Value>,
}

impl Events {
    fn send(&mut self, kind: &str, mut data: Value) {
        data["type"] = kind.into();
        data["sequence_number"] = self.number.into();
        self.number += 1;
        self.out.push(data);
    }

    /// Begins the message.
    fn start(&mut self, is_refusal: bool) {
        let empty = match is_refusal {
            true => Content::Refusal(String::new()),
            false => Content::Text(String::new()),
        };
        let mut started = message_item(&empty, &self.meta, "in_progress");
        started["content"] = json!([]);
        self.send("response.output_item.added", json!({"output_index": 0, "item": started}));
        let id = self.meta.id("msg_");
        let data = json!({"item_id": id, "output_index": 0, "content_index": 0, "part": part(&empty)});
        self.send("response.content_part.added", data);
        self.is_started = true;
    }

    /// Writes a piece of the message.
    fn delta(&mut self, text: &str, is_refusal: bool) {
        if !self.is_started {
            self.start(is_refusal);
        }
        self.text.push_str(text);
        let kind = if is_refusal { "response.refusal.delta" } else { "response.output_text.delta" };
        let mut data =
            json!({"item_id": self.meta.id("msg_"), "output_index": 0, "content_index": 0, "delta": text});
        if !is_refusal {
            data["logprobs"] = json!([]);
        }
        self.send(kind, data);
    }

    /// Ends the message.
    fn done(&mut self, content: &Content, status: &str) {
        let id = self.meta.id("msg_");
        let mut data = json!({"item_id": id, "output_index": 0, "content_index": 0});
        let kind = match content {
            Content::Refusal(reason) => {
                data["refusal"] = reason.as_str().into();
                "response.refusal.done"
            }
            _ => {
                data["text"] = self.text.as_str().into();
                data["logprobs"] = json!([]);
                "response.output_text.done"
            }
        };
        self.send(kind, data);
        let data = json!({"item_id": id, "output_index": 0, "content_index": 0, "part": part(content)});
        self.send("response.content_part.done", data);
        let item = message_item(content, &self.meta, status);
        self.send("response.output_item.done", json!({"output_index": 0, "item": item}));
    }

    /// Begins a call.
    fn start_call(&mut self, at: (usize, usize), name: &str) {
        let empty = Called { name: name.to_owned(), arguments: String::new() };
        let item = call_item(&empty, &self.meta, at.1, "in_progress");
        self.send("response.output_item.added", json!({"output_index": at.0, "item": item}));
    }

    /// Writes a piece of the arguments of a call.
    fn arguments(&mut self, at: (usize, usize), text: &str) {
        let id = self.meta.call_id("fc_", 0, at.1);
        let data = json!({"item_id": id, "output_index": at.0, "delta": text});
        self.send("response.function_call_arguments.delta", data);
    }

    /// Ends a call.
    fn end_call(&mut self, at: (usize, usize), called: &Called, status: &str) {
        let data = json!({
            "item_id": self.meta.call_id("fc_", 0, at.1), "output_index": at.0, "name": called.name,
            "arguments": called.arguments,
        });
        self.send("response.function_call_arguments.done", data);
        let item = call_item(called, &self.meta, at.1, status);
        self.send("response.output_item.done", json!({"output_index": at.0, "item": item}));
    }
}

impl Frames for Events {
    fn open(&mut self) -> Vec<Value> {
        for kind in ["response.created", "response.in_progress"] {
            let head = head(&self.meta, "in_progress");
            self.send(kind, json!({"response": head}));
        }
        std::mem::take(&mut self.out)
    }

    fn text(&mut self, text: &str) -> Vec<Value> {
        match self.called.take() {
            Some(name) => {
                if !std::mem::replace(&mut self.is_started, true) {
                    self.start_call((0, 0), &name);
                }
                self.arguments((0, 0), text);
                self.called = Some(name);
            }
            None => self.delta(text, false),
        }
        std::mem::take(&mut self.out)
    }

    fn close(&mut self, Choice { content, finish, .. }: &Choice, reply: &Reply) -> Vec<Value> {
        let is_cut = finish.incomplete().is_some();
        let status = if is_cut { "incomplete" } else { "completed" };
        // The arguments of a call were sent before only if it was known from the start.
        let mut is_called = self.called.take().is_some() && self.is_started;
        let has_text = match content {
            Content::Calls { text, .. } => !is_called && (self.is_started || !text.is_empty()),
            _ => true,
        };
        if has_text {
            if !self.is_started {
                self.delta(content.text(), matches!(content, Content::Refusal(_)));
            }
            self.done(content, status);
        }
        for (nth, called) in content.calls().iter().enumerate() {
            let at = (nth + usize::from(has_text), nth);
            if !std::mem::take(&mut is_called) {
                self.start_call(at, &called.name);
                self.arguments(at, &called.arguments);
            }
            self.end_call(at, called, status);
        }
        let kind = if is_cut { "response.incomplete" } else { "response.completed" };
        let response = document(reply, &self.meta);
        self.send(kind, json!({"response": response}));
        std::mem::take(&mut self.out)
    }

    fn fail(&mut self, problem: &Problem) -> Vec<Value> {
        let mut response = head(&self.meta, "failed");
        let mut details = error(problem)["error"].take();
        // The protocol has these two for errors of the service.
        let code = if problem.kind == Kind::RateLimited { "rate_limit_exceeded" } else { "server_error" };
        response["error"] = json!({"code": code, "message": problem.told(), "details": details});
        self.send("response.failed", json!({"response": response}));
        // Official clients raise this event if it has a member `error`; the documentation has its members at the top.
        let copy = details.clone();
        details["error"] = copy;
        self.send("error", details);
        std::mem::take(&mut self.out)
    }
}
