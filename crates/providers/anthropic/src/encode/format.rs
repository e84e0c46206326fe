//! The properties of the request that enforce a schema: an output format, or a tool that the model is forced to call.

use formwork_core::{Call, Enforcement, Fault};
use formwork_wire::{safe_name, schema_of, unsupported};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::{Anthropic, Mode};

/// The properties of the request body that constrain the output.
#[derive(Default)]
pub(super) struct Format<'a> {
    pub(super) output_config: Option<OutputConfig<'a>>,
    pub(super) tools: Vec<Tool<'a>>,
    pub(super) tool_choice: Option<ToolChoice<'a>>,
}

#[derive(Default, Serialize)]
pub(super) struct OutputConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<OutputFormat<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum OutputFormat<'a> {
    JsonSchema { schema: &'a RawValue },
}

#[derive(Serialize)]
pub(super) struct Tool<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    input_schema: Schema<'a>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    strict: bool,
}

/// The schema of a tool, written already or not.
#[derive(Serialize)]
#[serde(untagged)]
enum Schema<'a> {
    Written(&'a RawValue),
    Value(&'a Value),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ToolChoice<'a> {
    None,
    Any,
    Tool { name: &'a str, disable_parallel_tool_use: bool },
}

/// Returns the name of the tool whose input is the document, or `None` if the document is sent as text.
pub(crate) fn carrier(wire: &Anthropic, call: &Call) -> Option<String> {
    let is_tool = match call.enforcement() {
        Enforcement::Tool => true,
        Enforcement::Schema => wire.mode == Mode::Tool,
        _ => false,
    };
    is_tool.then(|| safe_name(&call.schema_name))
}

/// Returns the output format of a call; `carrier` is the name of the tool whose input is the document, and `tools` are the others.
pub(super) fn format<'a>(
    wire: &'a Anthropic,
    call: &'a Call,
    carrier: Option<&'a str>,
    tools: &'a [formwork_core::Tool],
) -> Result<Format<'a>, Fault> {
    let mut format = Format::default();
    let enforcement = call.enforcement();
    if enforcement == Enforcement::JsonObject {
        return Err(unsupported("the Messages API has no mode for JSON objects without a schema"));
    }
    if enforcement != Enforcement::None {
        let schema = schema_of(call)?;
        match carrier {
            None => {
                let output_format = Some(OutputFormat::JsonSchema { schema });
                format.output_config = Some(OutputConfig { format: output_format, effort: None });
            }
            Some(_) if wire.thinks() => {
                return Err(unsupported("a model cannot be forced to call a tool while it thinks"));
            }
            Some(name) => {
                // `strict` is constrained decoding, which `Enforcement::Tool` does not promise.
                let strict = wire.strict && enforcement == Enforcement::Schema;
                let description = "Gives the answer.";
                format.tools.push(Tool { name, description, input_schema: Schema::Written(schema), strict });
                format.tool_choice = Some(ToolChoice::Tool { name, disable_parallel_tool_use: true });
            }
        }
    }
    if let Some(effort) = &wire.effort {
        format.output_config.get_or_insert_default().effort = Some(effort);
    }
    if call.tools.is_empty() && !tools.is_empty() {
        // Those of the dialogue are there for the server alone.
        format.tool_choice.get_or_insert(ToolChoice::None);
    }
    // The API refuses it while the model thinks.
    let thinks = wire.thinks() || call.settings.as_ref().is_some_and(|own| own.reasoning_tokens.is_some());
    if call.requires_tool && !call.tools.is_empty() && !thinks {
        format.tool_choice.get_or_insert(ToolChoice::Any);
    }
    format.tools.extend(tools.iter().map(|tool| Tool {
        name: &tool.name,
        description: &tool.description,
        input_schema: Schema::Value(&tool.parameters),
        strict: false,
    }));
    Ok(format)
}
