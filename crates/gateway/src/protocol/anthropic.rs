//! Anthropic's Messages API.

use formwork_core::{Message, Part, Role};
use serde_json::{Value, json};

use super::fields::{self, Fields, Reader};
use super::parts::{self, Choice as ToolChoice};
use super::{Frames, Protocol, RawProtocol, to_json};
use crate::ask::{Ask, Sampling, Settings, Tool, Want};
use crate::contracts::Known;
use crate::document::{Document, Node};
use crate::problem::{Kind, Problem};
use crate::reply::{Called, Choice, Content, Finish, Meta, Reply};

/// The members that the protocol has. The response names those that are ignored.
pub(super) const FIELDS: &[&str] = &[
    "betas",
    "cache_control",
    "container",
    "context_management",
    "inference_geo",
    "max_tokens",
    "mcp_servers",
    "messages",
    "metadata",
    "model",
    "output_config",
    "output_format",
    "service_tier",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
];

/// The Messages API.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Anthropic;

impl Protocol for Anthropic {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn own(&self) -> (RawProtocol, &'static str) {
        (RawProtocol::Anthropic, "/v1/messages")
    }

    fn is_plain(&self, body: &Document<'_>) -> bool {
        (body.is_empty(["tools"]) || body.word(["tool_choice", "type"]) == Some("none"))
            && body.is_empty(["output_format"])
            && body.is_empty(["output_config", "format"])
    }

    fn ask(&self, body: Document<'_>, known: &Known) -> Result<Ask, Problem> {
        let mut body = Fields::body(body, known);
        body.known(FIELDS)?;
        if body.take("mcp_servers").is_some() {
            return Err(body.unsupported("mcp_servers", "is not supported"));
        }
        let mut messages = Vec::new();
        if let Some(system) = body.take("system") {
            let parts = content(system, "system", &body.reader())?;
            messages.push(Message { role: Role::System, parts });
        }
        let turns = body.list("messages")?.ok_or_else(|| body.missing("messages"))?;
        if turns.is_empty() {
            return Err(body.refuse("messages", "is empty"));
        }
        for (at, turn) in turns {
            message(&mut messages, turn, &at, &body.reader())?;
        }
        let mut settings = Settings::default();
        for (name, setting) in
            [("top_k", "top_k"), ("stop_sequences", "stop"), ("service_tier", "service_tier")]
        {
            body.setting(&mut settings, name, setting);
        }
        if let Some(mut metadata) = body.object("metadata")? {
            metadata.setting(&mut settings, "user_id", "user");
        }
        if body.word_in("thinking", "type").as_deref() == Some("enabled")
            && let Some(mut thinking) = body.object("thinking")?
        {
            thinking.take("type");
            thinking.setting(&mut settings, "budget_tokens", "reasoning_tokens");
        }
        let format = format(&mut body, &mut settings)?;
        let tools = parts::tools(&mut body, tool)?;
        let choice = choice(&mut body, &mut settings)?;
        let plain = Ask::plain(body.required_text("model")?);
        Ok(Ask {
            messages,
            settings,
            want: parts::want(format, tools, choice, "tool_choice")?,
            sampling: Sampling {
                temperature: body.number("temperature", 0.0..=1.0)?,
                top_p: body.number("top_p", 0.0..=1.0)?,
                seed: None,
                max_tokens: Some(body.count("max_tokens")?.ok_or_else(|| body.missing("max_tokens"))?),
            },
            stream: body.flag("stream")?.unwrap_or(false),
            include_usage: true,
            ignored: body.finish(),
            ..plain
        })
    }

    fn reply(&self, _: &Ask, reply: &Reply, meta: &Meta) -> Vec<u8> {
        let mut message = head(meta);
        if let Some(choice) = reply.choices.first() {
            message["content"] = blocks(&choice.content, meta).into();
            message["stop_reason"] = stop_reason(choice.finish).into();
        }
        message["usage"] = usage(reply, meta);
        to_json(&message)
    }

    fn problem(&self, problem: &Problem) -> Value {
        error(problem)
    }

    fn frames(&self, ask: &Ask, meta: &Meta) -> Box<dyn Frames> {
        Box::new(Events { meta: meta.clone(), called: ask.called(), sent: false })
    }
}

fn error(problem: &Problem) -> Value {
    let kind = match problem.kind {
        Kind::Unauthorized => "authentication_error",
        Kind::Forbidden => "permission_error",
        Kind::UnknownModel | Kind::NotFound => "not_found_error",
        Kind::TooLarge => "request_too_large",
        Kind::RateLimited | Kind::OutOfBudget => "rate_limit_error",
        Kind::Busy | Kind::Unavailable => "overloaded_error",
        Kind::Deadline => "timeout_error",
        Kind::Upstream | Kind::Internal => "api_error",
        _ => "invalid_request_error",
    };
    let mut error = json!({"type": kind, "message": problem.message});
    if let Some(violations) = problem.violations() {
        error["violations"] = violations;
    }
    json!({"type": "error", "error": error})
}

/// Adds the turns of a message: results of tools are turns of their own.
fn message<'t>(
    messages: &mut Vec<Message>,
    value: Node<'t>,
    at: &str,
    reader: &Reader<'t>,
) -> Result<(), Problem> {
    let mut fields = Fields::new(value, at, reader)?;
    let role = parts::role(&mut fields, &["user", "assistant", "system"])?;
    let place = fields.place("content");
    let parts = content(fields.take("content").ok_or_else(|| fields.missing("content"))?, &place, reader)?;
    let (results, parts): (Vec<_>, Vec<_>) =
        parts.into_iter().partition(|part| matches!(part, Part::ToolResult { .. }));
    messages.extend(results.into_iter().map(|result| Message { role: Role::Tool, parts: vec![result] }));
    if !parts.is_empty() {
        messages.push(Message { role, parts });
    }
    Ok(())
}

fn content<'t>(value: Node<'t>, at: &str, reader: &Reader<'t>) -> Result<Vec<Part>, Problem> {
    match fields::content(value, at)? {
        fields::Content::Text(text) => Ok(vec![Part::Text { text }]),
        fields::Content::Parts(items) => {
            let parts = items.into_iter().map(|(at, item)| part(item, &at, reader));
            Ok(parts.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
        }
    }
}

/// Reads a block; the model's own thoughts are left out, which no other protocol takes back.
fn part<'t>(value: Node<'t>, at: &str, reader: &Reader<'t>) -> Result<Option<Part>, Problem> {
    let mut block = Fields::new(value, at, reader)?;
    Ok(Some(match block.required_text("type")?.as_str() {
        "text" => Part::Text { text: block.required_text("text")? },
        "image" => {
            let mut source = block.object("source")?.ok_or_else(|| block.missing("source"))?;
            if source.required_text("type")? != "base64" {
                return Err(source.refuse("type", "send the picture as `base64`; addresses are not fetched"));
            }
            Part::Image {
                media_type: source.required_text("media_type")?,
                data: source.required_text("data")?,
            }
        }
        "tool_use" => Part::ToolCall {
            id: block.required_text("id")?,
            name: block.required_text("name")?,
            arguments: block.value("input")?.unwrap_or_else(|| json!({})),
        },
        "tool_result" => {
            let id = block.required_text("tool_use_id")?;
            let place = block.place("content");
            let parts = block.take("content").map(|value| content(value, &place, reader)).transpose()?;
            let text = Message { role: Role::Tool, parts: parts.unwrap_or_default() }.text();
            Part::ToolResult { id, text }
        }
        kind @ ("thinking" | "redacted_thinking") => {
            block.skip(kind);
            return Ok(None);
        }
        other => return Err(block.unsupported("type", &format!("`{other}` is not supported"))),
    }))
}

/// Reads the format of the answer: `output_config.format`, or `output_format` as the beta had it.
fn format(body: &mut Fields<'_>, settings: &mut Settings) -> Result<Want, Problem> {
    let format = match body.object("output_config")? {
        Some(mut config) => {
            config.setting(settings, "effort", "effort");
            config.object("format")?
        }
        None => None,
    };
    let older = body.object("output_format")?;
    if format.is_some() && older.is_some() {
        return Err(body.refuse("output_format", "is set beside `output_config.format`: use one of them"));
    }
    let Some(mut format) = format.or(older) else { return Ok(Want::Text) };
    match format.required_text("type")?.as_str() {
        "json_schema" => {
            let schema = format.schema("schema")?.ok_or_else(|| format.missing("schema"))?;
            Ok(Want::Json { name: "answer".to_owned(), schema })
        }
        other => Err(format.refuse("type", &format!("there is no format `{other}`"))),
    }
}

fn tool(mut tool: Fields<'_>) -> Result<Tool, Problem> {
    match tool.text("type")?.as_deref() {
        None | Some("custom") => parts::function(tool, "input_schema"),
        Some(other) => Err(tool.unsupported("type", &format!("`{other}` is not supported"))),
    }
}

fn choice(body: &mut Fields<'_>, settings: &mut Settings) -> Result<ToolChoice, Problem> {
    let Some(mut choice) = body.object("tool_choice")? else { return Ok(ToolChoice::Auto) };
    if choice.flag("disable_parallel_tool_use")?.unwrap_or(false) {
        settings.add("parallel_tools", false.into(), choice.place("disable_parallel_tool_use"));
    }
    Ok(match choice.required_text("type")?.as_str() {
        "auto" => ToolChoice::Auto,
        "any" => ToolChoice::Required,
        "none" => ToolChoice::None,
        "tool" => ToolChoice::Named(choice.required_text("name")?),
        other => return Err(choice.refuse("type", &format!("there is no choice `{other}`"))),
    })
}

fn head(meta: &Meta) -> Value {
    json!({
        "id": meta.id("msg_"), "type": "message", "role": "assistant", "model": meta.model, "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 0, "output_tokens": 0},
    })
}

/// Returns the blocks of an answer: its text, and its calls.
fn blocks(content: &Content, meta: &Meta) -> Vec<Value> {
    let has_text = !matches!(content, Content::Calls { text, .. } if text.is_empty());
    let text = has_text.then(|| json!({"type": "text", "text": content.text()}));
    let call = |(nth, called): (usize, &Called)| {
        let input = serde_json::from_str::<Value>(&called.arguments).unwrap_or_else(|_| json!({}));
        json!({"type": "tool_use", "id": meta.call_id("toolu_", 0, nth), "name": called.name, "input": input})
    };
    text.into_iter().chain(content.calls().iter().enumerate().map(call)).collect()
}

const fn stop_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "end_turn",
        Finish::Length => "max_tokens",
        Finish::Refused => "refusal",
        Finish::Call => "tool_use",
    }
}

fn usage(reply: &Reply, meta: &Meta) -> Value {
    // Anthropic counts tokens that were read from its cache separately.
    let fresh = reply.usage.input_tokens.saturating_sub(reply.usage.cached_tokens);
    json!({
        "input_tokens": fresh,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": reply.usage.cached_tokens,
        "output_tokens": reply.usage.output_tokens,
        "formwork": reply.extension(meta),
    })
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
