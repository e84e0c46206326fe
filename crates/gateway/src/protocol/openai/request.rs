//! Requests of Chat Completions.

use formwork_core::{Message, Part, Role};

use crate::ask::{Ask, Sampling, Settings, Want};
use crate::contracts::Known;
use crate::document::{Document, Node};
use crate::problem::Problem;
use crate::protocol::fields::{self, Fields, Reader};
use crate::protocol::parts;

/// The members that the protocol has. The response names those that are ignored.
#[rustfmt::skip]
pub(in crate::protocol) const FIELDS: &[&str] = &[
    "audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs",
    "max_completion_tokens", "max_tokens", "messages", "metadata", "modalities", "model", "n",
    "parallel_tool_calls", "prediction", "presence_penalty", "prompt_cache_key", "prompt_cache_retention",
    "reasoning_effort", "response_format", "safety_identifier", "seed", "service_tier", "stop", "store",
    "stream", "stream_options", "temperature", "tool_choice", "tools", "top_logprobs", "top_p", "user",
    "verbosity", "web_search_options",
];

/// The members of OpenAI's protocols that are settings of the model.
pub(in crate::protocol) const SETTINGS: [(&str, &str); 10] = [
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

/// Reads a request.
pub(super) fn ask(body: Document<'_>, known: &Known) -> Result<Ask, Problem> {
    let mut body = Fields::body(body, known);
    let count = body.count("n")?.unwrap_or(1);
    if body.count("best_of")?.is_some_and(|best| best > count) {
        // The server would write answers that nobody counts.
        return Err(body.refuse("best_of", "is more than `n`"));
    }
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
        let mut tool = parts::of_function(tool)?;
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
    let plain = Ask::plain(body.required_text("model")?);
    let mut settings = Settings::default();
    for (name, setting) in SETTINGS {
        body.setting(&mut settings, name, setting);
    }
    let want = parts::want(format, tools, choice, "tool_choice")?;
    let (limit, older) = (body.count("max_completion_tokens")?, body.count("max_tokens")?);
    if limit.zip(older).is_some_and(|(limit, older)| limit != older) {
        return Err(body.refuse("max_tokens", "is set beside `max_completion_tokens`: use one of them"));
    }
    body.log_probs(&mut settings, ("logprobs", &true.into()), (&want, stream));
    Ok(Ask {
        settings,
        messages,
        want,
        sampling: Sampling {
            temperature: body.number("temperature", 0.0..=2.0)?,
            top_p: body.number("top_p", 0.0..=1.0)?,
            seed: body.seed("seed")?,
            max_tokens: limit.or(older),
        },
        count,
        stream,
        include_usage,
        ignored: body.finish(),
        ..plain
    })
}

fn message<'t>(value: Node<'t>, at: &str, reader: &Reader<'t>) -> Result<Message, Problem> {
    let mut fields = Fields::new(value, at, reader)?;
    let role = parts::role(&mut fields, &["system", "developer", "user", "assistant", "tool"])?;
    let given = fields.take("content").map(|value| {
        let part = |item: Node<'t>, at: &str| part(item, at, reader).map(Some);
        fields::content(value, &fields.place("content"), |text| Part::Text { text }, part)
    });
    let mut parts = given.transpose()?.unwrap_or_default();
    if let Some(text) = fields.text("refusal")? {
        parts.push(Part::Text { text });
    }
    if role == Role::Tool {
        let id = fields.required_text("tool_call_id")?;
        let result = parts::result(id, parts, (&fields, "content"))?;
        return Ok(Message { role, parts: vec![result] });
    }
    for (at, call) in fields.list("tool_calls")?.unwrap_or_default() {
        let mut call = parts::of_function(Fields::new(call, at, reader)?)?;
        let id = call.required_text("id")?;
        let mut function = call.object("function")?.ok_or_else(|| call.missing("function"))?;
        let name = function.required_text("name")?;
        let arguments = parts::arguments(&function.required_text("arguments")?);
        parts.push(Part::ToolCall { id, name, arguments });
    }
    Ok(parts::message(role, parts))
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
