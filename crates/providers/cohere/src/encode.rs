//! Encodes a call as an HTTP request.

use formwork_core::{Call, Enforcement, Fault, Message, Part, Role};
use formwork_wire::http::Request;
use formwork_wire::{Bytes, bad_request, post, unsupported};
use serde_json::{Map, Value, json};

use crate::Cohere;

/// Returns the HTTP request for a call.
pub(crate) fn request(wire: &Cohere, call: &Call) -> Result<Request<Bytes>, Fault> {
    post("/v2/chat", &body(wire, call)?, &wire.extra.of(call))
}

/// Returns the name of the tool whose arguments are the document, or `None` if the document is sent as text.
pub(crate) fn carrier(call: &Call) -> Option<String> {
    (call.enforcement() == Enforcement::Tool).then(|| safe_name(&call.schema_name))
}

fn body(wire: &Cohere, call: &Call) -> Result<Value, Fault> {
    let mut messages = Vec::with_capacity(call.messages.len());
    for message in &call.messages {
        self::messages(message, &mut messages)?;
    }
    if messages.is_empty() {
        return Err(bad_request("the call has no messages"));
    }
    let mut body = Map::new();
    let mut put = |name: &str, value: Value| drop(body.insert(name.to_owned(), value));
    put("model", json!(wire.model));
    put("messages", Value::Array(messages));
    put("stream", json!(wire.stream));
    let known = &wire.capabilities;
    if let Some(limit) = call.max_tokens.or(known.default_max_tokens) {
        put("max_tokens", json!(limit));
    }
    if let Some(temperature) = call.sampling.temperature.filter(|_| known.temperature) {
        put("temperature", json!(temperature));
    }
    if let Some(top_p) = call.sampling.top_p.filter(|_| known.top_p) {
        put("p", json!(top_p));
    }
    if let Some(seed) = call.sampling.seed.filter(|_| known.seed) {
        put("seed", json!(seed));
    }
    let function = |name: &str, description: &str, schema: &Value| json!({"type": "function", "function": {"name": name, "description": description, "parameters": schema}});
    let schema =
        || call.schema().ok_or_else(|| bad_request("the call asks for an enforced schema and has none"));
    let mut tools: Vec<Value> =
        call.tools.iter().map(|one| function(&one.name, &one.description, &one.parameters)).collect();
    match call.enforcement() {
        Enforcement::Schema | Enforcement::JsonObject if !tools.is_empty() => {
            let message = "Cohere does not support `response_format` together with tools";
            return Err(unsupported(message));
        }
        Enforcement::Schema => {
            put("response_format", json!({"type": "json_object", "schema": schema()?}));
        }
        Enforcement::JsonObject => put("response_format", json!({"type": "json_object"})),
        Enforcement::Tool => {
            tools.insert(0, function(&safe_name(&call.schema_name), "Gives the answer.", schema()?));
            put("tool_choice", json!("REQUIRED"));
        }
        _ if call.requires_tool && !tools.is_empty() => put("tool_choice", json!("REQUIRED")),
        _ => {}
    }
    if !tools.is_empty() {
        put("tools", Value::Array(tools));
    }
    Ok(Value::Object(body))
}

/// Appends the API's messages for one message of the call. Tool results become separate messages.
fn messages(message: &Message, out: &mut Vec<Value>) -> Result<(), Fault> {
    let role = match message.role {
        Role::System => "system",
        Role::Assistant => "assistant",
        _ => "user",
    };
    let (mut content, mut calls) = (Vec::new(), Vec::new());
    for part in &message.parts {
        match part {
            Part::Text { text } if text.trim().is_empty() => {}
            Part::Text { text } => content.push(json!({"type": "text", "text": text})),
            Part::Image { media_type, data } if role == "user" => {
                let url = format!("data:{media_type};base64,{data}");
                content.push(json!({"type": "image_url", "image_url": {"url": url}}));
            }
            Part::ToolCall { id, name, arguments } if role == "assistant" => {
                let function = json!({"name": name, "arguments": arguments.to_string()});
                calls.push(json!({"id": id, "type": "function", "function": function}));
            }
            Part::ToolResult { id, text } => {
                out.push(json!({"role": "tool", "tool_call_id": id, "content": text}));
            }
            Part::Reasoning { .. } | Part::Original(_) => {}
            other => {
                let message = format!(
                    "Cohere's chat API does not support this part in a message of role `{role}`: {other:?}"
                );
                return Err(unsupported(message));
            }
        }
    }
    if content.is_empty() && calls.is_empty() {
        return Ok(());
    }
    let mut written = json!({"role": role});
    // The API accepts a plain string as content for every role.
    match content.as_slice() {
        [] => {}
        [only] if only["type"] == "text" => written["content"] = only["text"].clone(),
        _ => written["content"] = Value::Array(content),
    }
    if !calls.is_empty() {
        written["tool_calls"] = Value::Array(calls);
    }
    out.push(written);
    Ok(())
}

/// Returns `name` with the characters and the length that the API accepts: `[A-Za-z0-9_]{1,64}`.
fn safe_name(name: &str) -> String {
    formwork_wire::safe_name(name).replace('-', "_")
}

#[cfg(test)]
mod tests {
    use formwork_core::{Lowered, Tool};

    use super::*;

    #[test]
    fn a_call_is_required_of_a_model_that_has_tools() {
        let tool =
            Tool { name: "look".into(), description: String::new(), parameters: json!({"type": "object"}) };
        for (tools, requires, expected) in [
            (vec![tool.clone()], true, json!("REQUIRED")),
            (vec![tool], false, Value::Null),
            (Vec::new(), true, Value::Null),
        ] {
            let mut call = Call::new(vec![Message::user("Look.")], Lowered::default());
            (call.tools, call.requires_tool) = (tools, requires);
            let body: Value =
                serde_json::from_slice(request(&Cohere::new("command-test"), &call).unwrap().body()).unwrap();
            assert_eq!(body["tool_choice"], expected);
        }
    }
}
