//! Encodes a call as an HTTP request.

use std::fmt::Write as _;
use std::sync::Arc;

use formwork_core::{Call, Enforcement, Fault, Message, Part, PromptCache, Role, Tool};
use formwork_wire::http::Request;
use formwork_wire::{Bytes, bad_request, post, safe_id, safe_name, tools_of, unsupported};
use serde_json::{Map, Value, json};

use crate::{API, Bedrock, Mode};

/// Returns the HTTP request for a call.
pub(crate) fn request(wire: &Bedrock, call: &Call) -> Result<Request<Bytes>, Fault> {
    let operation = if wire.stream { "converse-stream" } else { "converse" };
    post(&format!("/model/{}/{operation}", encoded(&wire.model)), &body(wire, call)?, &wire.extra.of(call))
}

/// Returns the name of the tool whose input is the document, or `None` if the document is sent as text.
pub(crate) fn carrier(wire: &Bedrock, call: &Call) -> Option<String> {
    let is_tool = match call.enforcement() {
        Enforcement::Tool => true,
        Enforcement::Schema => wire.mode == Mode::Tool,
        _ => false,
    };
    is_tool.then(|| safe_name(&call.schema_name))
}

fn body(wire: &Bedrock, call: &Call) -> Result<Value, Fault> {
    let mut body = Map::new();
    // Not every model takes a cache point, so there is none without the setting.
    let ttl = |cache| if cache == PromptCache::Hour { "1h" } else { "5m" };
    let point = wire.prompt_cache.map(|cache| json!({"cachePoint": {"type": "default", "ttl": ttl(cache)}}));
    let task = if call.task_messages == 0 { call.messages.len() } else { call.task_messages };
    let (system, messages) = dialogue(&call.messages, point.as_ref().map(|point| (point, task)))?;
    body.insert("messages".to_owned(), Value::Array(messages));
    if !system.is_empty() {
        body.insert("system".to_owned(), Value::Array(system));
    }
    let limit = call.max_tokens.or(wire.capabilities.default_max_tokens);
    let temperature = call.sampling.temperature.filter(|it| wire.capabilities.takes_temperature(*it));
    let inference = [
        ("maxTokens", limit.map(Value::from)),
        ("temperature", temperature.map(Value::from)),
        ("topP", call.sampling.top_p.filter(|_| wire.capabilities.top_p).map(Value::from)),
    ];
    let inference: Map<String, Value> =
        inference.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    if !inference.is_empty() {
        body.insert("inferenceConfig".to_owned(), Value::Object(inference));
    }
    let tool = |name: &str, description: &str, schema: &Value| {
        let mut spec = json!({"name": name, "inputSchema": {"json": schema}});
        if !description.is_empty() {
            spec["description"] = json!(description);
        }
        spec
    };
    let mut tools: Vec<Value> = Vec::new();
    let mut choice = None;
    match (call.enforcement(), call.schema()) {
        (Enforcement::None, _) => {}
        (Enforcement::JsonObject, _) => {
            let message = "the Converse API has no mode for JSON objects without a schema";
            return Err(unsupported(message));
        }
        (_, None) => return Err(bad_request("the call asks for an enforced schema and has none")),
        (enforcement, Some(schema)) => match carrier(wire, call) {
            Some(name) => {
                let mut spec = tool(&name, "Gives the answer.", schema);
                // `strict` is constrained decoding, which `Enforcement::Tool` does not promise.
                if enforcement == Enforcement::Schema {
                    spec["strict"] = json!(true);
                }
                tools.push(json!({"toolSpec": spec}));
                choice = Some(json!({"tool": {"name": name}}));
            }
            None => {
                let schema = json!({"name": safe_name(&call.schema_name), "schema": schema.to_string()});
                let format = json!({"type": "json_schema", "structure": {"jsonSchema": schema}});
                body.insert("outputConfig".to_owned(), json!({"textFormat": format}));
            }
        },
    }
    let others = tools_of(call, carrier(wire, call).as_deref());
    let spec = |one: &Tool| json!({"toolSpec": tool(&one.name, &one.description, &one.parameters)});
    tools.extend(others.iter().map(spec));
    if call.requires_tool && !others.is_empty() {
        choice.get_or_insert_with(|| json!({"any": {}}));
    }
    if !tools.is_empty() {
        let mut config = json!({"tools": tools});
        if let Some(choice) = choice {
            config["toolChoice"] = choice;
        }
        body.insert("toolConfig".to_owned(), config);
    }
    Ok(Value::Object(body))
}

/// Returns the instructions, and alternating turns of `user` and `assistant`. A later system message becomes text of a user
/// turn.
///
/// A cache point follows the instructions, and another one the first messages, as many as it says.
fn dialogue(
    messages: &[Arc<Message>],
    point: Option<(&Value, usize)>,
) -> Result<(Vec<Value>, Vec<Value>), Fault> {
    let leading = messages.iter().take_while(|message| message.role == Role::System).count();
    let (instructions, rest) = messages.split_at(leading);
    let texts = instructions.iter().map(|message| message.text()).filter(|text| !text.trim().is_empty());
    let mut system: Vec<Value> = texts.map(|text| json!({"text": text})).collect();
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    system.extend(point.filter(|_| !system.is_empty()).map(|(point, _)| point.clone()));
    for (index, message) in rest.iter().enumerate() {
        let role = if message.role == Role::Assistant { "assistant" } else { "user" };
        let mut content = Vec::new();
        let original = message.parts.iter().find_map(|part| match part {
            Part::Original(original) => original.blocks_of(API),
            _ => None,
        });
        match original.filter(|_| role == "assistant") {
            Some(original) => content.extend(original.iter().cloned().map(|mut block| {
                // The API has given identifiers that it does not accept (Kimi's models), and the result has the accepted one.
                if let Some(Value::String(id)) = block.pointer_mut("/toolUse/toolUseId") {
                    *id = safe_id(id).into_owned();
                }
                block
            })),
            None => {
                for part in &message.parts {
                    content.extend(block(part)?);
                }
            }
        }
        let is_last = |(_, task): &(&Value, usize)| leading + index + 1 == *task && !content.is_empty();
        let after = point.filter(is_last).map(|(point, _)| point.clone());
        content.extend(after);
        match turns.last_mut() {
            _ if content.is_empty() => {}
            Some((last, blocks)) if *last == role => blocks.append(&mut content),
            _ => turns.push((role, content)),
        }
    }
    if turns.is_empty() {
        turns.push(("user", std::mem::take(&mut system)));
    }
    if turns.iter().all(|(_, content)| content.is_empty()) {
        return Err(bad_request("the call has no messages"));
    }
    Ok((system, turns.into_iter().map(|(role, content)| json!({"role": role, "content": content})).collect()))
}

fn block(part: &Part) -> Result<Option<Value>, Fault> {
    Ok(Some(match part {
        // The API refuses empty texts.
        Part::Text { text } if text.trim().is_empty() => return Ok(None),
        Part::Text { text } => json!({"text": text}),
        Part::Image { media_type, data } => {
            let format = media_type.strip_prefix("image/").unwrap_or(media_type);
            json!({"image": {"format": format, "source": {"bytes": data}}})
        }
        Part::ToolCall { id, name, arguments } => {
            json!({"toolUse": {"toolUseId": safe_id(id), "name": name, "input": arguments}})
        }
        Part::ToolResult { id, text } => {
            json!({"toolResult": {"toolUseId": safe_id(id), "content": [{"text": text}]}})
        }
        Part::Reasoning { .. } | Part::Original(_) => return Ok(None),
        other => {
            let message = format!("the Converse API has no such part: {other:?}");
            return Err(unsupported(message));
        }
    }))
}

/// Percent-encodes a text as one path segment (RFC 3986), because model identifiers contain colons and ARNs slashes.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use formwork_core::{Lowered, Original, Sampling, Tool};

    use super::*;

    #[test]
    fn a_temperature_above_that_of_the_api_is_not_sent() {
        for (temperature, is_sent) in [(0.0, true), (1.0, true), (1.5, false)] {
            let sampling = Sampling::default().with_temperature(temperature);
            let call = Call::new([Message::user("Look.")], Lowered::default()).with_sampling(sampling);
            let body = body(&Bedrock::new("m"), &call).unwrap();
            let sent = body["inferenceConfig"]["temperature"].as_f64();
            assert_eq!(sent, is_sent.then_some(temperature));
        }
    }

    #[test]
    fn a_call_and_its_result_have_one_valid_identifier() {
        for id in ["functions.look:0", "tooluse_a-1", &"a".repeat(70)] {
            let called = Part::ToolCall { id: id.into(), name: "look".into(), arguments: json!({}) };
            let original = json!([{"toolUse": {"toolUseId": id, "name": "look", "input": {}}}]);
            for part in [called, Part::Original(Original::new(API, original, [id]))] {
                let result = Part::ToolResult { id: id.into(), text: "a dog".into() };
                let messages = [
                    Message::user("Look."),
                    Message { role: Role::Assistant, parts: vec![part] },
                    Message { role: Role::Tool, parts: vec![result] },
                ];
                let call = Call::new(messages, Lowered::default());
                let body = body(&Bedrock::new("m"), &call).unwrap();
                let called = &body["messages"][1]["content"][0]["toolUse"]["toolUseId"];
                assert_eq!(called, &body["messages"][2]["content"][0]["toolResult"]["toolUseId"]);
                assert_eq!(called, &json!(safe_id(id)));
            }
        }
    }

    #[test]
    fn a_call_is_required_of_a_model_that_has_tools() {
        let tool =
            Tool { name: "look".into(), description: String::new(), parameters: json!({"type": "object"}) };
        for (tools, requires, expected) in [
            (vec![tool.clone()], true, json!({"any": {}})),
            (vec![tool], false, Value::Null),
            (Vec::new(), true, Value::Null),
        ] {
            let mut call = Call::new(vec![Message::user("Look.")], Lowered::default());
            (call.tools, call.requires_tool) = (tools, requires);
            let body: Value =
                serde_json::from_slice(request(&Bedrock::new("m"), &call).unwrap().body()).unwrap();
            assert_eq!(body["toolConfig"]["toolChoice"], expected);
        }
    }
}
