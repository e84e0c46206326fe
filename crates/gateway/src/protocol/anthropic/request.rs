//! Requests of the Messages API.

use formwork_core::{Message, Part, Role};
use serde_json::json;

use crate::ask::{Ask, Sampling, Settings, Tool, Want};
use crate::contracts::Known;
use crate::document::{Document, Node};
use crate::problem::Problem;
use crate::protocol::fields::{self, Fields, Reader};
use crate::protocol::parts::{self, Choice as ToolChoice};

/// The members that the protocol has. The response names those that are ignored.
#[rustfmt::skip]
pub(in crate::protocol) const FIELDS: &[&str] = &[
    "betas", "cache_control", "container", "context_management", "inference_geo", "max_tokens", "mcp_servers",
    "messages", "metadata", "model", "output_config", "output_format", "service_tier", "stop_sequences",
    "stream", "system", "temperature", "thinking", "tool_choice", "tools", "top_k", "top_p",
];

/// Reads a request.
pub(super) fn ask(body: Document<'_>, known: &Known) -> Result<Ask, Problem> {
    let mut body = Fields::body(body, known);
    body.known(FIELDS)?;
    if body.take("mcp_servers").is_some() {
        return Err(body.unsupported("mcp_servers", "is not supported"));
    }
    let mut messages = Vec::new();
    if let Some(system) = body.take("system") {
        let parts = content(system, "system", &body.reader())?;
        messages.push(parts::message(Role::System, parts));
    }
    let turns = body.list("messages")?.ok_or_else(|| body.missing("messages"))?;
    if turns.is_empty() {
        return Err(body.refuse("messages", "is empty"));
    }
    for (at, turn) in turns {
        message(&mut messages, turn, &at, &body.reader())?;
    }
    let mut settings = Settings::default();
    for (name, setting) in [("top_k", "top_k"), ("stop_sequences", "stop"), ("service_tier", "service_tier")]
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
        messages.push(parts::message(role, parts));
    }
    Ok(())
}

fn content<'t>(value: Node<'t>, at: &str, reader: &Reader<'t>) -> Result<Vec<Part>, Problem> {
    fields::content(value, at, |text| Part::Text { text }, |item, at| part(item, at, reader))
}

/// Reads a block; the model's own thoughts are left out, which no other protocol takes back.
fn part<'t>(value: Node<'t>, at: &str, reader: &Reader<'t>) -> Result<Option<Part>, Problem> {
    let mut block = Fields::new(value, at, reader)?;
    Ok(Some(match block.required_text("type")?.as_str() {
        "text" => Part::Text { text: block.required_text("text")? },
        "image" => {
            let mut source = block.object("source")?.ok_or_else(|| block.missing("source"))?;
            if source.required_text("type")? != "base64" {
                let why = "send the picture as `base64`; addresses are not fetched";
                return Err(source.unsupported("type", why));
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
            parts::result(id, parts.unwrap_or_default(), (&block, "content"))?
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
    let format = body.object("output_config")?.map(|mut config| {
        config.setting(settings, "effort", "effort");
        config.object("format")
    });
    let format = format.transpose()?.flatten();
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
