//! Requests of Ollama's APIs.

use formwork_core::{Message, Part, Role};
use serde_json::{Value, json};

use crate::ask::{Ask, Sampling, Settings, Tool, Want};
use crate::contracts::{Known, Schema};
use crate::document::{Document, Node, wrong};
use crate::problem::Problem;
use crate::protocol::fields::{Fields, Reader};
use crate::protocol::parts::{self, Choice as ToolChoice};

#[rustfmt::skip]
pub(in crate::protocol) const CHAT: &[&str] = &[
    "format", "keep_alive", "logprobs", "messages", "model", "options", "stream", "think", "tools",
    "top_logprobs", "truncate", "shift",
];

#[rustfmt::skip]
pub(in crate::protocol) const GENERATE: &[&str] = &[
    "context", "format", "images", "keep_alive", "logprobs", "model", "options", "prompt", "raw", "stream",
    "suffix", "system", "template", "think", "top_logprobs", "truncate", "shift",
];

/// Reads a request for a chat.
pub(super) fn chat(body: Document<'_>, known: &Known) -> Result<Ask, Problem> {
    let mut body = Fields::body(body, known);
    body.known(CHAT)?;
    let messages = dialogue(&mut body)?;
    let tools = parts::tools(&mut body, |mut tool| {
        let function = tool.object("function")?.ok_or_else(|| tool.missing("function"))?;
        parts::function(function, "parameters")
    })?;
    asked(body, messages, tools)
}

/// Reads a request with a prompt.
pub(super) fn generate(body: Document<'_>, known: &Known) -> Result<Ask, Problem> {
    let mut body = Fields::body(body, known);
    body.known(GENERATE)?;
    let messages = prompt(&mut body)?;
    asked(body, messages, Vec::new())
}

/// Reads the messages of a chat.
fn dialogue(body: &mut Fields<'_>) -> Result<Vec<Message>, Problem> {
    let turns = body.list("messages")?.ok_or_else(|| body.missing("messages"))?;
    let mut messages: Vec<Message> = Vec::new();
    for (at, turn) in turns {
        let message = message(turn, &at, &messages, &body.reader())?;
        messages.push(message);
    }
    if messages.is_empty() {
        return Err(body.refuse("messages", "is empty"));
    }
    Ok(messages)
}

/// Reads the messages of a prompt.
fn prompt(body: &mut Fields<'_>) -> Result<Vec<Message>, Problem> {
    for name in ["context", "raw", "suffix", "template"] {
        let value = body.value(name)?;
        if value.is_some_and(|value| value != json!("") && value != json!(false)) {
            return Err(body
                .refuse(name, "is only possible where the target is an Ollama server and no format is set"));
        }
    }
    let mut messages = Vec::new();
    if let Some(system) = body.text("system")?.filter(|system| !system.is_empty()) {
        messages.push(Message::system(system));
    }
    let mut prompt = Message::user(body.text("prompt")?.unwrap_or_default());
    prompt.parts.extend(images(body)?);
    messages.push(prompt);
    Ok(messages)
}

fn asked(mut body: Fields<'_>, messages: Vec<Message>, tools: Vec<Tool>) -> Result<Ask, Problem> {
    let document = |schema: Schema| Want::Json { name: "answer".to_owned(), schema };
    let format = match body.schema("format")? {
        None => Want::Text,
        Some(format) => match format.value() {
            Value::String(word) if word.is_empty() => Want::Text,
            Value::String(word) if word == "json" => document(json!({"type": "object"}).into()),
            Value::Object(_) => document(format),
            _ => return Err(body.refuse("format", "expected \"json\" or a JSON Schema")),
        },
    };
    let (mut sampling, mut settings) = (Sampling::default(), Settings::default());
    // `true` leaves the amount to the model.
    body.setting(&mut settings, "think", "effort");
    if let Some(mut options) = body.object("options")? {
        for name in ["stop", "top_k", "frequency_penalty", "presence_penalty"] {
            options.setting(&mut settings, name, name);
        }
        sampling.temperature = options.number("temperature", 0.0..=2.0)?;
        sampling.top_p = options.number("top_p", 0.0..=1.0)?;
        sampling.seed = options.seed("seed")?;
        // -1 and -2 stand for no limit.
        let limit = options.number("num_predict", -2.0..=f64::from(u32::MAX))?;
        sampling.max_tokens = limit.filter(|limit| *limit >= 1.0).map(|limit| limit as u32);
    }
    let plain = Ask::plain(body.required_text("model")?);
    let want = parts::want(format, tools, ToolChoice::Auto, "tools")?;
    let stream = body.flag("stream")?.unwrap_or(true);
    body.log_probs(&mut settings, ("logprobs", &true.into()), (&want, stream));
    Ok(Ask {
        messages,
        want,
        sampling,
        settings,
        stream,
        include_usage: true,
        ignored: body.finish(),
        ..plain
    })
}

fn message<'t>(
    value: Node<'t>,
    at: &str,
    before: &[Message],
    reader: &Reader<'t>,
) -> Result<Message, Problem> {
    let mut fields = Fields::new(value, at, reader)?;
    let role = parts::role(&mut fields, &["system", "user", "assistant", "tool"])?;
    let text = fields.text("content")?.unwrap_or_default();
    if role == Role::Tool {
        // Ollama's tool results have the tool's name in place of an id, and stand in the order of the calls of the last turn.
        let name = fields.text("tool_name")?.or(fields.text("name")?);
        let is_call = |part: &Part| matches!(part, Part::ToolCall { .. });
        let turn = before.iter().rposition(|message| message.parts.iter().any(is_call)).unwrap_or_default();
        let (calls, results) = before.get(turn..).and_then(<[_]>::split_first).unzip();
        let results: Vec<_> = results.into_iter().flatten().flat_map(|message| &message.parts).collect();
        let is_answered =
            |call: &str| results.iter().any(|part| matches!(part, Part::ToolResult { id, .. } if id == call));
        let called = calls.into_iter().flat_map(|message| &message.parts).filter_map(|part| match part {
            Part::ToolCall { id, name, .. } => Some((id, name)),
            _ => None,
        });
        let called = called.filter(|(_, called)| name.as_ref().is_none_or(|name| name == *called));
        let called: Vec<_> = called.map(|(id, _)| id).collect();
        let id = called.iter().find(|id| !is_answered(id)).or(called.last()).map(|id| (*id).clone());
        let id = fields.text("tool_call_id")?.or(id).unwrap_or_default();
        return Ok(Message { role, parts: vec![Part::ToolResult { id, text }] });
    }
    let mut parts = Vec::new();
    if !text.is_empty() {
        parts.push(Part::Text { text });
    }
    parts.extend(images(&mut fields)?);
    for (nth, (at, call)) in fields.list("tool_calls")?.unwrap_or_default().into_iter().enumerate() {
        let mut call = Fields::new(call, at, reader)?;
        let id = call.text("id")?.unwrap_or_else(|| format!("call_{}_{nth}", before.len()));
        let mut function = call.object("function")?.ok_or_else(|| call.missing("function"))?;
        let name = function.required_text("name")?;
        let arguments = function.value("arguments")?.unwrap_or_else(|| json!({}));
        parts.push(Part::ToolCall { id, name, arguments });
    }
    Ok(Message { role, parts })
}

fn images(fields: &mut Fields<'_>) -> Result<Vec<Part>, Problem> {
    let images = fields.list("images")?.unwrap_or_default().into_iter();
    images
        .map(|(at, image)| match image {
            Node::Text(data) => {
                Ok(Part::Image { media_type: parts::media_type(&data).to_owned(), data: data.into_owned() })
            }
            other => Err(wrong(&at, "base64 in a string", &other)),
        })
        .collect()
}
