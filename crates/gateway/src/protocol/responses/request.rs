//! Requests of the Responses API.

use formwork_core::{Message, Part, Role};
use serde_json::json;

use crate::ask::{Ask, Sampling, Settings, Want};
use crate::contracts::Known;
use crate::document::{Document, Node};
use crate::problem::Problem;
use crate::protocol::fields::{self, Fields, Reader};
use crate::protocol::openai::SETTINGS;
use crate::protocol::parts;

/// The members that the protocol has. The response names those that are ignored.
#[rustfmt::skip]
pub(in crate::protocol) const FIELDS: &[&str] = &[
    "background", "conversation", "context_management", "include", "input", "instructions",
    "max_output_tokens", "max_tool_calls", "metadata", "model", "parallel_tool_calls", "previous_response_id",
    "prompt", "prompt_cache_key", "prompt_cache_retention", "reasoning", "safety_identifier", "service_tier",
    "store", "stream", "stream_options", "temperature", "text", "tool_choice", "tools", "top_logprobs",
    "top_p", "truncation", "user",
];

/// The members with a dialogue, or a part of one, that the vendor has and the service does not.
pub(crate) const KEPT_BY_VENDOR: [&str; 3] = ["conversation", "previous_response_id", "prompt"];

/// Reads a request.
pub(super) fn ask(body: Document<'_>, known: &Known) -> Result<Ask, Problem> {
    let mut body = Fields::body(body, known);
    body.known(FIELDS)?;
    for name in KEPT_BY_VENDOR {
        if body.take(name).is_some() {
            return Err(body.unsupported(name, "is not supported: send the whole dialogue as `input`"));
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
    let reader = body.reader();
    for item in fields::content(input, "input", Message::user, |item, at| message(item, at, &reader))? {
        // A turn of the model has an item for its text and for each of its calls; other protocols have one message for it.
        match messages.last_mut().filter(|last| is_one_turn(last, &item)) {
            Some(turn) => turn.parts.extend(item.parts),
            None => messages.push(item),
        }
    }
    if messages.iter().all(|message| message.role == Role::System) {
        return Err(body.refuse("input", "is empty"));
    }
    let mut settings = Settings::default();
    for (name, setting) in SETTINGS {
        body.setting(&mut settings, name, setting);
    }
    if let Some(mut reasoning) = body.object("reasoning")? {
        reasoning.setting(&mut settings, "effort", "effort");
    }
    let format = format(&mut body, &mut settings)?;
    let tools = parts::tools(&mut body, |tool| parts::function(parts::of_function(tool)?, "parameters"))?;
    let choice = parts::choice(&mut body, |mut choice| choice.required_text("name"))?;
    let plain = Ask::plain(body.required_text("model")?);
    let want = parts::want(format, tools, choice, "tool_choice")?;
    let stream = body.flag("stream")?.unwrap_or(false);
    body.log_probs(&mut settings, ("include", &json!(["message.output_text.logprobs"])), (&want, stream));
    Ok(Ask {
        messages,
        settings,
        want,
        sampling: Sampling {
            temperature: body.number("temperature", 0.0..=2.0)?,
            top_p: body.number("top_p", 0.0..=1.0)?,
            seed: None,
            max_tokens: body.count("max_output_tokens")?,
        },
        stream,
        include_usage: true,
        ignored: body.finish(),
        ..plain
    })
}

/// Returns whether two messages are one turn of the model, which calls tools.
fn is_one_turn(one: &Message, other: &Message) -> bool {
    let has_calls = |message: &Message| message.parts.iter().any(|it| matches!(it, Part::ToolCall { .. }));
    one.role == Role::Assistant && other.role == Role::Assistant && (has_calls(one) || has_calls(other))
}

fn message<'t>(value: Node<'t>, at: &str, reader: &Reader<'t>) -> Result<Option<Message>, Problem> {
    let mut item = Fields::new(value, at, reader)?;
    let kind = item.text("type")?.unwrap_or_else(|| "message".to_owned());
    Ok(Some(match kind.as_str() {
        "message" => {
            let role = parts::role(&mut item, &["system", "developer", "user", "assistant"])?;
            let given = item.take("content").ok_or_else(|| item.missing("content"))?;
            parts::message(role, content(given, &item.place("content"), reader)?)
        }
        "function_call" => {
            let id = item.required_text("call_id")?;
            let name = item.required_text("name")?;
            let arguments = parts::arguments(&item.required_text("arguments")?);
            Message { role: Role::Assistant, parts: vec![Part::ToolCall { id, name, arguments }] }
        }
        "function_call_output" => {
            let id = item.required_text("call_id")?;
            let output = item.take("output").ok_or_else(|| item.missing("output"))?;
            let parts = match output {
                Node::Text(text) => vec![Part::Text { text: text.into_owned() }],
                Node::List(ref items) if !items.is_empty() && items.iter().all(is_part) => {
                    content(output, &item.place("output"), reader)?
                }
                // Some clients send the value of a tool as it is.
                other => {
                    let value = other.value().map_err(|error| item.refuse("output", &error.to_string()))?;
                    vec![Part::Text { text: value.to_string() }]
                }
            };
            Message { role: Role::Tool, parts: vec![parts::result(id, parts, (&item, "output"))?] }
        }
        // The reasoning of earlier turns cannot be sent to other protocols, so it is dropped.
        "reasoning" => {
            item.skip("reasoning");
            return Ok(None);
        }
        other => return Err(item.unsupported("type", &format!("`{other}` is not supported"))),
    }))
}

/// Returns whether a value is a part of a content, and not one of a tool's own.
fn is_part(value: &Node<'_>) -> bool {
    let kinds = ["input_text", "output_text", "text", "refusal", "input_image", "input_file"]
        .map(|kind| Node::Text(kind.into()));
    matches!(value, Node::Object(members) if members.iter().any(|(name, kind)| name == "type" && kinds.contains(kind)))
}

fn content<'t>(value: Node<'t>, at: &str, reader: &Reader<'t>) -> Result<Vec<Part>, Problem> {
    fields::content(value, at, |text| Part::Text { text }, |item, at| part(item, at, reader).map(Some))
}

fn part<'t>(value: Node<'t>, at: &str, reader: &Reader<'t>) -> Result<Part, Problem> {
    let mut part = Fields::new(value, at, reader)?;
    match part.required_text("type")?.as_str() {
        "input_text" | "output_text" | "text" => Ok(Part::Text { text: part.required_text("text")? }),
        "refusal" => Ok(Part::Text { text: part.required_text("refusal")? }),
        "input_image" => match part.text("image_url")? {
            Some(url) => parts::picture(&url, &part.place("image_url")),
            None => {
                let why = "send the picture as a `data:` URL with base64; files are not fetched";
                Err(part.unsupported("image_url", why))
            }
        },
        other => Err(part.unsupported("type", &format!("`{other}` is not supported"))),
    }
}

fn format(body: &mut Fields<'_>, settings: &mut Settings) -> Result<Want, Problem> {
    let format = body.object("text")?.map(|mut text| {
        text.setting(settings, "verbosity", "verbosity");
        text.object("format")
    });
    let Some(mut format) = format.transpose()?.flatten() else { return Ok(Want::Text) };
    let kind = format.required_text("type")?;
    parts::format(format, &kind)
}
