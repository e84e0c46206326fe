//! Ollama's chat and generate APIs.

use formwork_core::{Message, Part, Role};
use serde_json::{Value, json};
use time::UtcDateTime;

use super::fields::{Fields, Reader, wrong};
use super::parts::{self, Choice as ToolChoice};
use super::{Frames, LINES, Protocol, RawProtocol, to_json};
use crate::ask::{Ask, Sampling, Settings, Tool, Want};
use crate::contracts::{Known, Schema};
use crate::document::{Document, Node};
use crate::problem::Problem;
use crate::reply::{Called, Choice, Content, Finish, Meta, Reply};

pub(super) const CHAT: &[&str] = &[
    "format",
    "keep_alive",
    "logprobs",
    "messages",
    "model",
    "options",
    "stream",
    "think",
    "tools",
    "top_logprobs",
    "truncate",
    "shift",
];
pub(super) const GENERATE: &[&str] = &[
    "context",
    "format",
    "images",
    "keep_alive",
    "logprobs",
    "model",
    "options",
    "prompt",
    "raw",
    "stream",
    "suffix",
    "system",
    "template",
    "think",
    "top_logprobs",
    "truncate",
    "shift",
];

/// Ollama's API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ollama {
    /// `/api/chat`.
    Chat,
    /// `/api/generate`.
    Generate,
}

impl Protocol for Ollama {
    fn name(&self) -> &'static str {
        "ollama"
    }

    fn own(&self) -> (RawProtocol, &'static str) {
        let path = match self {
            Self::Chat => "/api/chat",
            Self::Generate => "/api/generate",
        };
        (RawProtocol::Ollama, path)
    }

    fn is_plain(&self, body: &Document<'_>) -> bool {
        (*self == Self::Generate || body.is_empty(["tools"])) && body.is_empty(["format"])
    }

    fn is_stream(&self, body: &Document<'_>) -> bool {
        body.get(["stream"]) != Some(&Node::Scalar(Value::Bool(false)))
    }

    fn ask(&self, body: Document<'_>, known: &Known) -> Result<Ask, Problem> {
        let mut body = Fields::body(body, known);
        match self {
            Self::Chat => {
                body.known(CHAT)?;
                let messages = dialogue(&mut body)?;
                let tools = parts::tools(&mut body, |mut tool| {
                    let function = tool.object("function")?.ok_or_else(|| tool.missing("function"))?;
                    parts::function(function, "parameters")
                })?;
                ask(body, messages, tools)
            }
            Self::Generate => {
                body.known(GENERATE)?;
                let messages = prompt(&mut body)?;
                ask(body, messages, Vec::new())
            }
        }
    }

    fn reply(&self, _: &Ask, reply: &Reply, meta: &Meta) -> Vec<u8> {
        let mut out = json!({"model": meta.model, "created_at": timestamp(meta.created)});
        let content = reply.choices.first().map(|choice| &choice.content);
        match self {
            Self::Chat => out["message"] = content.map_or(Value::Null, message_of),
            Self::Generate => out["response"] = content.map_or("", Content::text).into(),
        }
        end(&mut out, reply, meta);
        to_json(&out)
    }

    fn problem(&self, problem: &Problem) -> Value {
        error(problem)
    }

    fn frames(&self, ask: &Ask, meta: &Meta) -> Box<dyn Frames> {
        let is_call = matches!(ask.want, Want::Call(_));
        Box::new(Lines { meta: meta.clone(), is_chat: *self == Self::Chat, is_call, sent: false })
    }

    fn sampling_at(&self) -> &'static str {
        "options."
    }

    fn stream_type(&self) -> &'static str {
        LINES
    }
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

fn ask(mut body: Fields<'_>, messages: Vec<Message>, tools: Vec<Tool>) -> Result<Ask, Problem> {
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
    Ok(Ask {
        messages,
        want: parts::want(format, tools, ToolChoice::Auto, "tools")?,
        sampling,
        settings,
        stream: body.flag("stream")?.unwrap_or(true),
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
        // Ollama's tool results have the tool's name in place of an id, and belong to its last call.
        let name = fields.text("tool_name")?.or(fields.text("name")?);
        let calls = before.iter().rev().flat_map(|message| message.parts.iter().rev());
        let called = calls.filter_map(|part| match part {
            Part::ToolCall { id, name, .. } => Some((id, name)),
            _ => None,
        });
        let id = called.into_iter().find(|(_, called)| name.as_ref().is_none_or(|name| name == *called));
        let id = fields.text("tool_call_id")?.or(id.map(|(id, _)| id.clone())).unwrap_or_default();
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

fn error(problem: &Problem) -> Value {
    let mut error = json!({"error": problem.message});
    if let Some(violations) = problem.violations() {
        error["violations"] = violations;
    }
    error
}

fn message_of(content: &Content) -> Value {
    let mut message = json!({"role": "assistant", "content": content.text()});
    if !content.calls().is_empty() {
        let call = |called: &Called| {
            let arguments = serde_json::from_str::<Value>(&called.arguments).unwrap_or_else(|_| json!({}));
            json!({"function": {"name": called.name, "arguments": arguments}})
        };
        message["tool_calls"] = content.calls().iter().map(call).collect();
    }
    message
}

fn end(out: &mut Value, reply: &Reply, meta: &Meta) {
    let finish = reply.choices.first().map_or(Finish::Stop, |choice| choice.finish);
    out["done"] = true.into();
    out["done_reason"] = match finish {
        Finish::Length => "length",
        // The protocol has no finish reason for refusals; the text contains the reason.
        Finish::Refused => "refusal",
        Finish::Stop | Finish::Call => "stop",
    }
    .into();
    out["prompt_eval_count"] = reply.usage.input_tokens.into();
    out["eval_count"] = reply.usage.output_tokens.into();
    out["formwork"] = json!(reply.extension(meta));
}

/// Returns a moment as RFC 3339 has it, in UTC.
pub(crate) fn timestamp(seconds: u64) -> String {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    let moment = UtcDateTime::from_unix_timestamp(seconds).unwrap_or(UtcDateTime::MAX);
    let (hour, minute, second) = moment.as_hms();
    format!("{}T{hour:02}:{minute:02}:{second:02}Z", moment.date())
}

/// The lines of a stream.
struct Lines {
    meta: Meta,
    is_chat: bool,
    /// Whether a tool is called: its arguments are an object, which cannot come in pieces.
    is_call: bool,
    sent: bool,
}

impl Lines {
    fn line(&self, content: &Content) -> Value {
        let mut out = json!({"model": self.meta.model, "created_at": timestamp(self.meta.created)});
        if self.is_chat {
            out["message"] = message_of(content);
        } else {
            out["response"] = content.text().into();
        }
        out["done"] = false.into();
        out
    }
}

impl Frames for Lines {
    /// Returns a line without text: the protocol has no comments, and its clients read every line as JSON.
    fn keep_alive(&self) -> Option<Value> {
        Some(self.line(&Content::Text(String::new())))
    }

    fn text(&mut self, text: &str) -> Vec<Value> {
        if self.is_call {
            return Vec::new();
        }
        self.sent = true;
        vec![self.line(&Content::Text(text.to_owned()))]
    }

    fn close(&mut self, choice: &Choice, reply: &Reply) -> Vec<Value> {
        let whole = match &choice.content {
            content if !self.sent => Some(self.line(content)),
            // The text was sent before.
            Content::Calls { calls, .. } => {
                let calls = Content::Calls { text: String::new(), calls: calls.clone() };
                Some(self.line(&calls))
            }
            _ => None,
        };
        let mut last = self.line(&Content::Text(String::new()));
        end(&mut last, reply, &self.meta);
        whole.into_iter().chain([last]).collect()
    }

    fn fail(&mut self, problem: &Problem) -> Vec<Value> {
        vec![error(problem)]
    }
}

#[cfg(test)]
mod tests {
    use super::timestamp;

    #[test]
    fn moments_are_written_as_rfc_3339_has_them() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_795_392_061, "2026-11-23T00:01:01Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(timestamp(seconds), expected);
        }
    }
}
