//! OpenAI's Responses API.

use formwork_core::{Message, Part, Role};
use serde_json::{Value, json};

use super::fields::{self, Fields, Reader};
use super::openai::error;
use super::parts;
use super::{Frames, Protocol, RawProtocol, to_json};
use crate::ask::{Ask, Sampling, Settings, Want};
use crate::contracts::Known;
use crate::document::{Document, Node};
use crate::problem::Problem;
use crate::reply::{Called, Choice, Content, Finish, Meta, Reply};

/// The members that the protocol has. The response names those that are ignored.
pub(super) const FIELDS: &[&str] = &[
    "background",
    "conversation",
    "context_management",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];

/// The members that are settings of the model.
const SETTINGS: [(&str, &str); 5] = [
    ("service_tier", "service_tier"),
    ("parallel_tool_calls", "parallel_tools"),
    ("metadata", "metadata"),
    ("safety_identifier", "user"),
    ("user", "user"),
];

/// The Responses API.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Responses;

impl Protocol for Responses {
    fn name(&self) -> &'static str {
        "responses"
    }

    fn own(&self) -> (RawProtocol, &'static str) {
        (RawProtocol::Responses, "/responses")
    }

    fn is_plain(&self, body: &Document<'_>) -> bool {
        (body.is_empty(["tools"]) || body.word(["tool_choice"]) == Some("none"))
            && matches!(body.word(["text", "format", "type"]), None | Some("text"))
    }

    fn ask(&self, body: Document<'_>, known: &Known) -> Result<Ask, Problem> {
        let mut body = Fields::body(body, known);
        body.known(FIELDS)?;
        // The gateway stores no conversations, so it cannot continue one.
        for name in ["conversation", "previous_response_id", "prompt"] {
            if body.take(name).is_some() {
                return Err(body.refuse(name, "is not supported: send the whole dialogue as `input`"));
            }
        }
        if body.flag("background")?.unwrap_or(false) {
            return Err(body.unsupported("background", "is not supported"));
        }
        let mut messages = Vec::new();
        if let Some(instructions) = body.text("instructions")? {
            messages.push(Message::system(instructions));
        }
        let input = body.take("input").ok_or_else(|| body.missing("input"))?;
        match fields::content(input, "input")? {
            fields::Content::Text(text) => messages.push(Message::user(text)),
            fields::Content::Parts(items) => {
                let reader = body.reader();
                for (at, item) in items {
                    messages.extend(message(item, &at, &reader)?);
                }
            }
        }
        let mut settings = Settings::default();
        for (name, setting) in SETTINGS {
            body.setting(&mut settings, name, setting);
        }
        if let Some(mut reasoning) = body.object("reasoning")? {
            reasoning.setting(&mut settings, "effort", "effort");
        }
        let format = format(&mut body, &mut settings)?;
        let tools =
            parts::tools(&mut body, |tool| parts::function(parts::of_type(tool, "function")?, "parameters"))?;
        let choice =
            parts::choice(&mut body, |choice| parts::of_type(choice, "function")?.required_text("name"))?;
        let plain = Ask::plain(body.required_text("model")?);
        Ok(Ask {
            messages,
            settings,
            want: parts::want(format, tools, choice, "tool_choice")?,
            sampling: Sampling {
                temperature: body.number("temperature", 0.0..=2.0)?,
                top_p: body.number("top_p", 0.0..=1.0)?,
                seed: None,
                max_tokens: body.count("max_output_tokens")?,
            },
            stream: body.flag("stream")?.unwrap_or(false),
            include_usage: true,
            ignored: body.finish(),
            ..plain
        })
    }

    fn reply(&self, _: &Ask, reply: &Reply, meta: &Meta) -> Vec<u8> {
        to_json(&whole(reply, meta))
    }

    fn problem(&self, problem: &Problem) -> Value {
        error(problem)
    }

    fn frames(&self, ask: &Ask, meta: &Meta) -> Box<dyn Frames> {
        Box::new(Events {
            meta: meta.clone(),
            called: ask.called(),
            text: String::new(),
            is_started: false,
            number: 0,
            out: Vec::new(),
        })
    }
}

fn message<'t>(value: Node<'t>, at: &str, reader: &Reader<'t>) -> Result<Option<Message>, Problem> {
    let mut item = Fields::new(value, at, reader)?;
    let kind = item.text("type")?.unwrap_or_else(|| "message".to_owned());
    Ok(Some(match kind.as_str() {
        "message" => {
            let role = parts::role(&mut item, &["system", "developer", "user", "assistant"])?;
            let given = item.take("content").ok_or_else(|| item.missing("content"))?;
            let parts = match fields::content(given, &item.place("content"))? {
                fields::Content::Text(text) => vec![Part::Text { text }],
                fields::Content::Parts(parts) => parts
                    .into_iter()
                    .map(|(at, part)| content(part, &at, reader))
                    .collect::<Result<_, _>>()?,
            };
            Message { role, parts }
        }
        "function_call" => {
            let id = item.required_text("call_id")?;
            let name = item.required_text("name")?;
            let arguments = parts::arguments(&item.required_text("arguments")?);
            Message { role: Role::Assistant, parts: vec![Part::ToolCall { id, name, arguments }] }
        }
        "function_call_output" => {
            let id = item.required_text("call_id")?;
            let text = match item.value("output")? {
                Some(Value::String(text)) => text,
                Some(other) => other.to_string(),
                None => return Err(item.missing("output")),
            };
            Message { role: Role::Tool, parts: vec![Part::ToolResult { id, text }] }
        }
        // The reasoning of earlier turns cannot be sent to other protocols, so it is dropped.
        "reasoning" => {
            item.skip("reasoning");
            return Ok(None);
        }
        other => return Err(item.unsupported("type", &format!("`{other}` is not supported"))),
    }))
}

fn content<'t>(value: Node<'t>, at: &str, reader: &Reader<'t>) -> Result<Part, Problem> {
    let mut part = Fields::new(value, at, reader)?;
    match part.required_text("type")?.as_str() {
        "input_text" | "output_text" | "text" => Ok(Part::Text { text: part.required_text("text")? }),
        "refusal" => Ok(Part::Text { text: part.required_text("refusal")? }),
        "input_image" => parts::picture(&part.required_text("image_url")?, &part.place("image_url")),
        other => Err(part.unsupported("type", &format!("`{other}` is not supported"))),
    }
}

fn format(body: &mut Fields<'_>, settings: &mut Settings) -> Result<Want, Problem> {
    let format = match body.object("text")? {
        Some(mut text) => {
            text.setting(settings, "verbosity", "verbosity");
            text.object("format")?
        }
        None => None,
    };
    let Some(mut format) = format else { return Ok(Want::Text) };
    let kind = format.required_text("type")?;
    parts::format(format, &kind)
}

fn head(meta: &Meta, status: &str) -> Value {
    json!({
        "id": meta.id("resp_"), "object": "response", "created_at": meta.created, "status": status,
        "model": meta.model, "output": [], "error": null, "incomplete_details": null, "instructions": null,
        "metadata": {}, "parallel_tool_calls": true, "temperature": null, "tool_choice": "auto", "tools": [],
        "top_p": null, "usage": null,
    })
}

fn whole(reply: &Reply, meta: &Meta) -> Value {
    let choice = reply.choices.first();
    let is_cut = choice.is_some_and(|choice| choice.finish == Finish::Length);
    let status = if is_cut { "incomplete" } else { "completed" };
    let mut whole = head(meta, status);
    if is_cut {
        whole["incomplete_details"] = json!({"reason": "max_output_tokens"});
    }
    whole["output"] = choice.map(|choice| items(&choice.content, meta, status)).unwrap_or_default().into();
    let usage = reply.usage;
    whole["usage"] = json!({
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens.saturating_add(usage.output_tokens),
        "formwork": reply.extension(meta),
    });
    whole
}

/// Returns the items of an answer: its text, and its calls.
fn items(content: &Content, meta: &Meta, status: &str) -> Vec<Value> {
    let has_text = !matches!(content, Content::Calls { text, .. } if text.is_empty());
    let message = has_text.then(|| message_item(content, meta, status));
    let calls = content.calls().iter().enumerate().map(|(nth, called)| call_item(called, meta, nth, status));
    message.into_iter().chain(calls).collect()
}

fn message_item(content: &Content, meta: &Meta, status: &str) -> Value {
    json!({
        "type": "message", "id": meta.id("msg_"), "role": "assistant", "status": status, "content": [part(content)],
    })
}

fn call_item(called: &Called, meta: &Meta, nth: usize, status: &str) -> Value {
    json!({
        "type": "function_call", "id": meta.call_id("fc_", 0, nth), "call_id": meta.call_id("call_", 0, nth),
        "name": called.name, "arguments": called.arguments, "status": status,
    })
}

fn part(content: &Content) -> Value {
    match content {
        Content::Refusal(reason) => json!({"type": "refusal", "refusal": reason}),
        content => json!({"type": "output_text", "text": content.text(), "annotations": [], "logprobs": []}),
    }
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

    fn close(&mut self, Choice { content, finish }: &Choice, reply: &Reply) -> Vec<Value> {
        let is_cut = *finish == Finish::Length;
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
        let response = whole(reply, &self.meta);
        self.send(kind, json!({"response": response}));
        std::mem::take(&mut self.out)
    }

    fn fail(&mut self, problem: &Problem) -> Vec<Value> {
        let mut response = head(&self.meta, "failed");
        let mut details = error(problem)["error"].take();
        response["error"] = json!({"code": "server_error", "message": problem.message, "details": details});
        self.send("response.failed", json!({"response": response}));
        // Official clients raise this event if it has a member `error`; the documentation has its members at the top.
        let copy = details.clone();
        details["error"] = copy;
        self.send("error", details);
        std::mem::take(&mut self.out)
    }
}
