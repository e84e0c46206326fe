//! The properties of the request that enforce a schema: a response format, or a tool that the model is forced to call.

use async_openai::types::chat::{
    ChatCompletionNamedToolChoice, ChatCompletionToolChoiceOption, FunctionName, ToolChoiceOptions,
};
use formwork_core::{Call, Enforcement, Fault};
use formwork_wire::{bad_request, schema_of};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::OpenAi;

/// The properties of the request body that constrain the output.
///
/// They borrow the schema; the types of `async-openai` would require a copy of it for every call.
#[derive(Default)]
pub(super) struct Format<'a> {
    pub(super) response_format: Option<ResponseFormat<'a>>,
    pub(super) tools: Vec<Tool<'a>>,
    pub(super) tool_choice: Option<ChatCompletionToolChoiceOption>,
    pub(super) parallel_tool_calls: Option<bool>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ResponseFormat<'a> {
    JsonObject,
    JsonSchema { json_schema: JsonSchema<'a> },
}

#[derive(Serialize)]
pub(super) struct JsonSchema<'a> {
    name: &'a str,
    schema: &'a RawValue,
    strict: bool,
}

/// JSON that is written already, or a value.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Json<'a> {
    Written(&'a RawValue),
    Value(&'a Value),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Tool<'a> {
    Function { function: Function<'a> },
}

#[derive(Serialize)]
pub(super) struct Function<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    parameters: Json<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

pub(super) fn format<'a>(wire: &OpenAi, call: &'a Call, name: &'a str) -> Result<Format<'a>, Fault> {
    let strict = wire.strict;
    let mut format = Format::default();
    match call.enforcement() {
        Enforcement::None => {}
        Enforcement::JsonObject => format.response_format = Some(ResponseFormat::JsonObject),
        Enforcement::Schema => {
            let json_schema = JsonSchema { name, schema: schema_of(call)?, strict };
            format.response_format = Some(ResponseFormat::JsonSchema { json_schema });
        }
        Enforcement::Tool => {
            format.tools.push(tool(name, "Gives the answer.", Json::Written(schema_of(call)?), Some(strict)));
            let function = FunctionName { name: name.to_owned() };
            let choice = ChatCompletionNamedToolChoice { function };
            format.tool_choice = Some(ChatCompletionToolChoiceOption::Function(choice));
            format.parallel_tool_calls = Some(false);
        }
        _ => return Err(bad_request("Chat Completions does not support this enforcement")),
    }
    if call.requires_tool && !call.tools.is_empty() {
        let required = ChatCompletionToolChoiceOption::Mode(ToolChoiceOptions::Required);
        format.tool_choice.get_or_insert(required);
    }
    let tools = call.tools.iter();
    format
        .tools
        .extend(tools.map(|one| tool(&one.name, &one.description, Json::Value(&one.parameters), None)));
    Ok(format)
}

fn tool<'a>(name: &'a str, description: &'a str, parameters: Json<'a>, strict: Option<bool>) -> Tool<'a> {
    Tool::Function { function: Function { name, description, parameters, strict } }
}
