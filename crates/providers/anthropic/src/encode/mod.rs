//! Encodes a call as an HTTP request.

mod format;
mod messages;

use formwork_core::{Call, Fault, PromptCache};
use formwork_wire::http::{HeaderName, HeaderValue, Request};
use formwork_wire::{Bytes, bad_request, post, tools_of};
use serde::Serialize;

use format::{OutputConfig, Tool, ToolChoice};
use messages::{Block, CacheControl, Turn};

pub(crate) use format::carrier;

use crate::{Anthropic, DEFAULT_MAX_TOKENS, Thinking};

#[derive(Serialize)]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    anthropic_version: Option<&'static str>,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoice<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'a>>,
    messages: Vec<Turn<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thought>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    stream: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Thought {
    Disabled,
    Adaptive,
    Enabled { budget_tokens: u32 },
}

/// Returns the HTTP request for a call.
pub(crate) fn request(wire: &Anthropic, call: &Call) -> Result<Request<Bytes>, Fault> {
    let max_tokens = max_tokens(wire, call);
    let thinking = wire.thinking.map(|thinking| thought(thinking, max_tokens)).transpose()?;
    let name = carrier(wire, call);
    let tools = tools_of(call, name.as_deref());
    let format = format::format(wire, call, name.as_deref(), &tools)?;
    let thinks = wire.thinking != Some(Thinking::Off);
    let ttl = (wire.prompt_cache == Some(PromptCache::Hour)).then_some("1h");
    let mark = wire.cache.then_some(CacheControl::Ephemeral { ttl });
    let task = if call.task_messages == 0 { call.messages.len() } else { call.task_messages };
    let marked = if call.is_repeated || wire.prompt_cache.is_some() { task } else { 0 };
    let dialogue = messages::dialogue(&call.messages, mark, marked, thinks)?;
    let body = Body {
        // On Vertex AI the path names the model, and the body has the version.
        model: wire.resource.is_none().then_some(&wire.model),
        anthropic_version: wire.resource.as_ref().map(|_| "vertex-2023-10-16"),
        max_tokens,
        tools: format.tools,
        tool_choice: format.tool_choice,
        system: dialogue.system,
        messages: dialogue.turns,
        output_config: format.output_config,
        thinking,
        temperature: call.sampling.temperature.filter(|it| wire.capabilities.takes_temperature(*it)),
        top_p: call.sampling.top_p.filter(|_| wire.capabilities.top_p),
        stream: wire.stream,
    };
    if let Some(resource) = &wire.resource {
        let operation = if wire.stream { "streamRawPredict" } else { "rawPredict" };
        return post(&format!("{resource}:{operation}"), &body, &wire.extra.of(call));
    }
    let mut request = post("/v1/messages", &body, &wire.extra.of(call))?;
    let version = HeaderValue::from_static("2023-06-01");
    request.headers_mut().insert(HeaderName::from_static("anthropic-version"), version);
    Ok(request)
}

/// Returns `max_tokens`, which the API requires, limited to the model's output limit.
fn max_tokens(wire: &Anthropic, call: &Call) -> u32 {
    let known = &wire.capabilities;
    let limit = call.max_tokens.or(known.default_max_tokens).or(known.output_tokens);
    limit.unwrap_or(DEFAULT_MAX_TOKENS).min(known.output_tokens.unwrap_or(u32::MAX))
}

/// Returns the `thinking` parameter, or an error if its budget leaves no tokens for the document.
fn thought(thinking: Thinking, max_tokens: u32) -> Result<Thought, Fault> {
    Ok(match thinking {
        Thinking::Off => Thought::Disabled,
        Thinking::Adaptive => Thought::Adaptive,
        Thinking::Budget { budget_tokens } if budget_tokens >= max_tokens => {
            return Err(bad_request(format!(
                "the thinking budget ({budget_tokens} tokens) must be less than `max_tokens` of the call ({max_tokens})"
            )));
        }
        Thinking::Budget { budget_tokens } => Thought::Enabled { budget_tokens },
    })
}
