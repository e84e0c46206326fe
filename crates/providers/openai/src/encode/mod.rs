//! Encodes a call as an HTTP request.

mod format;
mod messages;

use async_openai::types::chat::{ChatCompletionStreamOptions, ChatCompletionToolChoiceOption};
use formwork_core::{Call, Fault};
use formwork_wire::http::Request;
use formwork_wire::{Bytes, safe_name};
use serde::Serialize;

use format::{ResponseFormat, Tool};
use messages::ChatMessage;

pub(crate) use format::Json;
pub(crate) use messages::{dialogue, text_alone};

use crate::line_breaks::Bias;
use crate::{MaxTokensField, OpenAi};

/// The request body. `async-openai` has no suitable type: its temperature is an `f32` and its seed an `i64`.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<ChatMessage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ChatCompletionToolChoiceOption>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frequency_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logit_bias: Option<Bias<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<ChatCompletionStreamOptions>,
}

pub(crate) fn request(wire: &OpenAi, call: &Call) -> Result<Request<Bytes>, Fault> {
    let capabilities = &wire.capabilities;
    let most = wire.max_tokens(call);
    let (max_completion_tokens, max_tokens) = match wire.max_tokens_field {
        MaxTokensField::MaxCompletionTokens => (most, None),
        MaxTokensField::MaxTokens => (None, most),
    };
    let name = safe_name(&call.schema_name);
    let format = format::format(wire, call, &name)?;
    let dialogue = dialogue(wire, call);
    let usage = ChatCompletionStreamOptions { include_usage: Some(true), ..Default::default() };
    let body = Body {
        model: &wire.model,
        messages: messages::messages(&dialogue, wire.system_role)?,
        response_format: format.response_format,
        tools: format.tools,
        tool_choice: format.tool_choice,
        parallel_tool_calls: format.parallel_tool_calls,
        temperature: call.sampling.temperature.filter(|_| capabilities.temperature),
        top_p: call.sampling.top_p.filter(|_| capabilities.top_p),
        // Servers read the seed as a signed 64-bit integer.
        seed: call.sampling.seed.filter(|_| capabilities.seed).map(|seed| seed & u64::MAX >> 1),
        frequency_penalty: call.sampling.frequency_penalty.filter(|_| capabilities.frequency_penalty),
        logit_bias: wire.line_breaks.bias(call),
        max_completion_tokens,
        max_tokens,
        stream: wire.stream,
        stream_options: (wire.stream && wire.stream_usage).then_some(usage),
    };
    post(wire, call, "/chat/completions", &body)
}

/// Returns a POST request with `body` and the additional properties of the codec's configuration.
pub(crate) fn post(
    wire: &OpenAi,
    call: &Call,
    path: &str,
    body: &impl Serialize,
) -> Result<Request<Bytes>, Fault> {
    formwork_wire::post(&wire.path(path), body, &wire.extra.of(call))
}
