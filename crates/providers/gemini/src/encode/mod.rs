//! Encodes a call as an HTTP request.

mod messages;
mod openapi;

use formwork_core::{Call, Enforcement, Fault};
use formwork_wire::http::Request;
use formwork_wire::{Bytes, bad_request, folded, post};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use messages::Dialogue;

use crate::Gemini;

/// The dialect whose schemas are sent as `responseSchema`.
const OPENAPI: &str = "gemini-openapi";

/// The property of a part that has the signature of the thoughts before it.
pub(crate) const SIGNATURE: &str = "thoughtSignature";

pub(crate) fn request(wire: &Gemini, call: &Call) -> Result<Request<Bytes>, Fault> {
    let method = if wire.stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
    post(&format!("{}:{method}", wire.resource), &body(wire, call)?, &wire.extra.of(call))
}

/// Returns the name of the function whose arguments are the document, or `None` if the document is sent as text.
pub(crate) fn carrier(call: &Call) -> Option<String> {
    (call.enforcement() == Enforcement::Tool).then(|| safe_name(&call.schema_name))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(flatten)]
    dialogue: Dialogue<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Value>,
    #[serde(skip_serializing_if = "Generation::is_empty")]
    generation_config: Generation<'a>,
}

/// `generationConfig`.
#[derive(Serialize)]
struct Generation<'a> {
    #[serde(flatten)]
    members: Map<String, Value>,
    #[serde(rename = "responseJsonSchema", skip_serializing_if = "Option::is_none")]
    schema: Option<&'a RawValue>,
}

impl Generation<'_> {
    fn is_empty(&self) -> bool {
        self.members.is_empty() && self.schema.is_none()
    }
}

fn body<'a>(wire: &Gemini, call: &'a Call) -> Result<Body<'a>, Fault> {
    let dialogue = messages::dialogue(&call.messages, wire.version().is_some_and(|major| major >= 3))?;
    let (mut generation, mut tool_config) =
        (Generation { members: generation(wire, call), schema: None }, None);
    let mut functions: Vec<Value> =
        call.tools.iter().map(|tool| function(&tool.name, &tool.description, &tool.parameters)).collect();
    match call.enforcement() {
        Enforcement::None => {}
        Enforcement::JsonObject => json_mode(&mut generation.members),
        Enforcement::Schema => {
            let members = &mut generation.members;
            json_mode(members);
            if call.lowered.dialect == OPENAPI {
                members.insert("responseSchema".to_owned(), openapi::written(schema(call)?));
            } else {
                members.shift_remove("responseJsonSchema");
                generation.schema = call.lowered.schema_json();
            }
        }
        Enforcement::Tool => {
            let name = safe_name(&call.schema_name);
            functions.push(function(&name, "Gives the answer.", schema(call)?));
            let choice = json!({"mode": "ANY", "allowedFunctionNames": [name]});
            tool_config = Some(json!({"functionCallingConfig": choice}));
        }
        _ => {
            return Err(bad_request("the Gemini API does not support this enforcement"));
        }
    }
    if call.requires_tool && !call.tools.is_empty() {
        tool_config.get_or_insert_with(|| json!({"functionCallingConfig": {"mode": "ANY"}}));
    }
    let tools = (!functions.is_empty()).then(|| json!([{"functionDeclarations": functions}]));
    Ok(Body { dialogue, tool_config, tools, generation_config: generation })
}

/// Returns the properties of `generationConfig` that do not depend on the schema.
fn generation(wire: &Gemini, call: &Call) -> Map<String, Value> {
    let promised = &wire.capabilities;
    let mut members = wire.generation.clone();
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            formwork_wire::merge(&mut members, &Map::from_iter([(name.to_owned(), value)]));
        }
    };
    let sampling = &call.sampling;
    set("temperature", sampling.temperature.filter(|_| promised.temperature).map(Value::from));
    set("topP", sampling.top_p.filter(|_| promised.top_p).map(Value::from));
    // The API reads a signed 32-bit integer.
    set("seed", sampling.seed.filter(|_| promised.seed).map(|seed| folded(seed).into()));
    let max = call.max_tokens.map(|max| max.min(promised.output_tokens.unwrap_or(u32::MAX)));
    set("maxOutputTokens", max.map(Value::from));
    let mut thinking = Map::new();
    if let Some(budget) = wire.thinking.budget {
        thinking.insert("thinkingBudget".to_owned(), json!(budget));
    }
    if let Some(level) = wire.thinking.level {
        thinking.insert("thinkingLevel".to_owned(), json!(level));
    }
    if let Some(include) = wire.thinking.include {
        thinking.insert("includeThoughts".to_owned(), json!(include));
    }
    set("thinkingConfig", (!thinking.is_empty()).then_some(Value::Object(thinking)));
    members
}

fn json_mode(generation: &mut Map<String, Value>) {
    generation.insert("responseMimeType".to_owned(), json!("application/json"));
}

fn schema(call: &Call) -> Result<&Value, Fault> {
    let none = "the call asks for an enforced schema and has none";
    call.schema().ok_or_else(|| bad_request(none))
}

fn function(name: &str, description: &str, parameters: &Value) -> Value {
    json!({"name": name, "description": description, "parametersJsonSchema": parameters})
}

/// Returns `name` as a function name that the API accepts: it begins with a letter or `_` and has at most 64 characters.
fn safe_name(name: &str) -> String {
    let is_safe = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let safe: String = name.chars().map(|letter| if is_safe(letter) { letter } else { '_' }).collect();
    let has_start = safe.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let safe = if has_start { safe } else { format!("_{safe}") };
    safe.chars().take(64).collect()
}
