//! Encodes a call as an HTTP request.

use std::borrow::Cow;

use formwork_core::{Call, Enforcement, Fault};
use formwork_wire::http::Request;
use formwork_wire::{Bytes, bad_request, safe_name, schema_of};
use serde::Serialize;
use serde_json::value::RawValue;

use super::input::{Item, input};
use crate::OpenAi;
use crate::encode::{Json, dialogue, post};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<Cow<'a, str>>,
    input: Vec<Item<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    stream: bool,
    /// Always `false`: by default the API stores every response for 30 days.
    store: bool,
}

#[derive(Serialize)]
struct Text<'a> {
    format: Format<'a>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Format<'a> {
    JsonObject,
    JsonSchema { name: &'a str, schema: &'a RawValue, strict: bool },
}

/// A tool. `strict` is always sent, because the API's default is `true`.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Tool<'a> {
    Function {
        name: &'a str,
        #[serde(skip_serializing_if = "str::is_empty")]
        description: &'a str,
        parameters: Json<'a>,
        strict: bool,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ToolChoice<'a> {
    Function {
        name: &'a str,
    },
    #[serde(untagged)]
    Mode(&'static str),
}

/// Returns the HTTP request for a call.
pub(crate) fn request(wire: &OpenAi, call: &Call) -> Result<Request<Bytes>, Fault> {
    let capabilities = &wire.capabilities;
    let enforcement = call.enforcement();
    let name = safe_name(&call.schema_name);
    let strict = wire.strict;
    let (mut format, mut tools, mut tool_choice) = (None, Vec::new(), None);
    match enforcement {
        Enforcement::None => {}
        Enforcement::JsonObject => format = Some(Format::JsonObject),
        Enforcement::Schema => {
            format = Some(Format::JsonSchema { name: &name, schema: schema_of(call)?, strict });
        }
        Enforcement::Tool => {
            let (description, parameters) = ("Gives the answer.", Json::Written(schema_of(call)?));
            tools.push(Tool::Function { name: &name, description, parameters, strict });
            tool_choice = Some(ToolChoice::Function { name: &name });
        }
        _ => return Err(bad_request("the Responses API does not support this enforcement")),
    }
    tools.extend(call.tools.iter().map(|tool| Tool::Function {
        name: &tool.name,
        description: &tool.description,
        parameters: Json::Value(&tool.parameters),
        strict: false,
    }));
    // The document has one call.
    let parallel_tool_calls = tool_choice.is_some().then_some(false);
    if call.requires_tool && !call.tools.is_empty() {
        tool_choice.get_or_insert(ToolChoice::Mode("required"));
    }
    let messages = dialogue(wire, call);
    let input = input(&messages, wire.system_role, enforcement)?;
    let body = Body {
        model: &wire.model,
        instructions: input.instructions,
        input: input.items,
        text: format.map(|format| Text { format }),
        tools,
        parallel_tool_calls,
        tool_choice,
        temperature: call.sampling.temperature.filter(|_| capabilities.temperature),
        top_p: call.sampling.top_p.filter(|_| capabilities.top_p),
        max_output_tokens: wire.max_tokens(call),
        stream: wire.stream,
        store: false,
    };
    post(wire, call, "/responses", &body)
}
