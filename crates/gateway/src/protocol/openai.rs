//! OpenAI's Chat Completions.

use formwork_core::{Message, Part, Role, Usage};
use serde::Serialize;
use serde_json::{Value, json};

use super::fields::{self, Fields, Reader, content};
use super::parts;
use super::{Frames, Protocol, RawProtocol, to_json};
use crate::ask::{Ask, Sampling, Settings, Want};
use crate::contracts::Known;
use crate::document::{Document, Node};
use crate::problem::{Kind, Problem};
use crate::reply::{self, Called, Choice, Content, Finish, Meta, Reply};

/// The members that the protocol has. The response names those that are ignored.
pub(super) const FIELDS: &[&str] = &[
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "modalities",
    "model",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
];

/// The members that are settings of the model.
const SETTINGS: [(&str, &str); 10] = [
    ("reasoning_effort", "effort"),
    ("verbosity", "verbosity"),
    ("service_tier", "service_tier"),
    ("stop", "stop"),
    ("frequency_penalty", "frequency_penalty"),
    ("presence_penalty", "presence_penalty"),
    ("parallel_tool_calls", "parallel_tools"),
    ("metadata", "metadata"),
    ("safety_identifier", "user"),
    ("user", "user"),
];

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
        let mut body = Fields::body(body, known);
        body.known(FIELDS)?;
        for name in ["audio", "functions", "function_call", "web_search_options"] {
            if body.take(name).is_some() {
                return Err(body.unsupported(name, "is not supported"));
            }
        }
        let messages = body.list("messages")?.ok_or_else(|| body.missing("messages"))?;
        let reader = body.reader();
        let messages = messages.into_iter().map(|(at, item)| message(item, &at, &reader));
        let messages = messages.collect::<Result<Vec<_>, _>>()?;
        if messages.is_empty() {
            return Err(body.refuse("messages", "is empty"));
        }
        let format = format(&mut body)?;
        let tools = parts::tools(&mut body, |tool| {
            let mut tool = parts::of_type(tool, "function")?;
            let function = tool.object("function")?.ok_or_else(|| tool.missing("function"))?;
            parts::function(function, "parameters")
        })?;
        let choice = parts::choice(&mut body, |mut choice| {
            let mut function = choice.object("function")?.ok_or_else(|| choice.missing("function"))?;
            function.required_text("name")
        })?;
        let stream = body.flag("stream")?.unwrap_or(false);
        let include_usage = match body.object("stream_options")? {
            Some(mut options) => options.flag("include_usage")?.unwrap_or(false),
            None => false,
        };
        let count = body.count("n")?.unwrap_or(1);
        let plain = Ask::plain(body.required_text("model")?);
        let mut settings = Settings::default();
        for (name, setting) in SETTINGS {
            body.setting(&mut settings, name, setting);
        }
        Ok(Ask {
            settings,
            messages,
            want: parts::want(format, tools, choice, "tool_choice")?,
            sampling: Sampling {
                temperature: body.number("temperature", 0.0..=2.0)?,
                top_p: body.number("top_p", 0.0..=1.0)?,
                seed: body.seed("seed")?,
                max_tokens: match body.count("max_completion_tokens")? {
                    Some(tokens) => Some(tokens),
                    None => body.count("max_tokens")?,
                },
            },
            count,
            stream,
            include_usage,
            ignored: body.finish(),
            ..plain
        })
    }

    fn reply(&self, _: &Ask, reply: &Reply, meta: &Meta) -> Vec<u8> {
        let choices = reply.choices.iter().enumerate().map(|(nth, choice)| {
            let (content, refusal, calls) = match &choice.content {
                Content::Text(text) => (Some(text.as_str()), None, None),
                Content::Refusal(reason) => (None, Some(reason.as_str()), None),
                Content::Calls { text, calls } => {
                    let calls = calls.iter().enumerate().map(|(at, one)| call(one, meta, (nth, at)));
                    (Some(text.as_str()).filter(|text| !text.is_empty()), None, Some(calls.collect()))
                }
            };
            let message = Answered { role: "assistant", content, refusal, tool_calls: calls };
            Chosen { index: nth, message, logprobs: (), finish_reason: finish(choice.finish) }
        });
        to_json(&Completion {
            id: meta.id("chatcmpl-"),
            object: "chat.completion",
            created: meta.created,
            model: &meta.model,
            choices: choices.collect(),
            usage: usage(reply, meta),
            system_fingerprint: (),
        })
    }

    fn problem(&self, problem: &Problem) -> Value {
        error(problem)
    }

    fn frames(&self, ask: &Ask, meta: &Meta) -> Box<dyn Frames> {
        Box::new(Chunks {
            meta: meta.clone(),
            include_usage: ask.include_usage,
            called: ask.called(),
            index: 0,
            sent: false,
        })
    }
}

/// Returns the error of both protocols of OpenAI.
pub(super) fn error(problem: &Problem) -> Value {
    let kind = match problem.kind {
        Kind::Unauthorized => "authentication_error",
        Kind::Forbidden => "permission_error",
        Kind::RateLimited => "rate_limit_error",
        Kind::OutOfBudget => "insufficient_quota",
        Kind::Busy | Kind::Unavailable | Kind::Upstream | Kind::Deadline | Kind::Internal => "server_error",
        _ => "invalid_request_error",
    };
    let mut error = json!({
        "message": problem.message, "type": kind, "param": problem.param, "code": problem.code(),
    });
    if let Some(violations) = problem.violations() {
        error["violations"] = violations;
    }
    json!({"error": error})
}

fn message<'t>(value: Node<'t>, at: &str, reader: &Reader<'t>) -> Result<Message, Problem> {
    let mut fields = Fields::new(value, at, reader)?;
    let role = parts::role(&mut fields, &["system", "developer", "user", "assistant", "tool"])?;
    let given = fields.take("content").map(|value| content(value, &fields.place("content"))).transpose()?;
    let mut parts = match given {
        None => Vec::new(),
        Some(fields::Content::Text(text)) => vec![Part::Text { text }],
        Some(fields::Content::Parts(parts)) => {
            parts.into_iter().map(|(at, item)| part(item, &at, reader)).collect::<Result<_, _>>()?
        }
    };
    if let Some(text) = fields.text("refusal")? {
        parts.push(Part::Text { text });
    }
    if role == Role::Tool {
        let id = fields.required_text("tool_call_id")?;
        let text = Message { role, parts }.text();
        return Ok(Message { role, parts: vec![Part::ToolResult { id, text }] });
    }
    for (at, call) in fields.list("tool_calls")?.unwrap_or_default() {
        let mut call = Fields::new(call, at, reader)?;
        let id = call.required_text("id")?;
        let mut function = call.object("function")?.ok_or_else(|| call.missing("function"))?;
        let name = function.required_text("name")?;
        let arguments = parts::arguments(&function.required_text("arguments")?);
        parts.push(Part::ToolCall { id, name, arguments });
    }
    Ok(Message { role, parts })
}

fn part<'t>(value: Node<'t>, at: &str, reader: &Reader<'t>) -> Result<Part, Problem> {
    let mut part = Fields::new(value, at, reader)?;
    match part.required_text("type")?.as_str() {
        "text" => Ok(Part::Text { text: part.required_text("text")? }),
        "refusal" => Ok(Part::Text { text: part.required_text("refusal")? }),
        "image_url" => {
            let mut image = part.object("image_url")?.ok_or_else(|| part.missing("image_url"))?;
            parts::picture(&image.required_text("url")?, &image.place("url"))
        }
        other => Err(part.unsupported("type", &format!("`{other}` is not supported"))),
    }
}

fn format(body: &mut Fields<'_>) -> Result<Want, Problem> {
    let Some(mut format) = body.object("response_format")? else { return Ok(Want::Text) };
    let kind = format.required_text("type")?;
    if kind == "json_schema" {
        format = format.object("json_schema")?.ok_or_else(|| format.missing("json_schema"))?;
    }
    parts::format(format, &kind)
}

fn call(called: &Called, meta: &Meta, (answer, nth): (usize, usize)) -> Value {
    json!({
        "id": meta.call_id("call_", answer, nth), "type": "function",
        "function": {"name": called.name, "arguments": called.arguments},
    })
}

const fn finish(finish: Finish) -> &'static str {
    match finish {
        // The message reports the refusal; the official parsers check the finish reason first.
        Finish::Stop | Finish::Refused => "stop",
        Finish::Length => "length",
        Finish::Call => "tool_calls",
    }
}

/// A response. Its parts are types, because a tree of values takes several times as long to build and to write.
#[derive(Serialize)]
struct Completion<'r> {
    id: String,
    object: &'static str,
    created: u64,
    model: &'r str,
    choices: Vec<Chosen<'r>>,
    usage: Used<'r>,
    system_fingerprint: (),
}

#[derive(Serialize)]
struct Chosen<'r> {
    index: usize,
    message: Answered<'r>,
    logprobs: (),
    finish_reason: &'static str,
}

#[derive(Serialize)]
struct Answered<'r> {
    role: &'static str,
    content: Option<&'r str>,
    refusal: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<Vec<Value>>,
}

#[derive(Serialize)]
struct Used<'r> {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    prompt_tokens_details: Cached,
    completion_tokens_details: Reasoned,
    formwork: reply::Extension<'r>,
}

#[derive(Serialize)]
struct Cached {
    cached_tokens: u64,
}

#[derive(Serialize)]
struct Reasoned {
    reasoning_tokens: u64,
}

fn usage<'r>(reply: &'r Reply, meta: &'r Meta) -> Used<'r> {
    let Usage { input_tokens, output_tokens, cached_tokens, reasoning_tokens, .. } = reply.usage;
    Used {
        prompt_tokens: input_tokens,
        completion_tokens: output_tokens,
        total_tokens: input_tokens.saturating_add(output_tokens),
        prompt_tokens_details: Cached { cached_tokens },
        completion_tokens_details: Reasoned { reasoning_tokens },
        formwork: reply.extension(meta),
    }
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

impl Frames for Chunks {
    fn open(&mut self) -> Vec<Value> {
        let content = if self.called.is_some() { Value::Null } else { "".into() };
        vec![self.chunk(&json!({"role": "assistant", "content": content}), None)]
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
        vec![error(problem)]
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
