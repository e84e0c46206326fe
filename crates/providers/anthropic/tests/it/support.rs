//! Calls and response bodies.

use std::sync::Arc;

use formwork_anthropic::Anthropic;
use formwork_core::{Call, Completion, Delta, Enforcement, Fault, Lowered, Message};
use formwork_wire::http::Response;
use formwork_wire::http::response::Parts;
use formwork_wire::{Deltas, Wire};
use serde_json::{Value, json};

pub(crate) fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"],
        "additionalProperties": false,
    })
}

pub(crate) fn call(enforcement: Enforcement) -> Call {
    let schema = matches!(enforcement, Enforcement::Schema | Enforcement::Tool).then(schema);
    Call::new(
        vec![Message::system("Answer in JSON."), Message::user("Maria, 34, moved to Lisbon.")],
        Lowered::new(enforcement, schema),
    )
    .with_schema_name("Person record")
}

/// The name that the tool of [`call`] has in requests.
pub(crate) const TOOL: &str = "Person_record";

/// The body of a request.
pub(crate) fn sent(wire: &Anthropic, call: &Call) -> Value {
    serde_json::from_slice(wire.encode(call).unwrap().body()).unwrap()
}

pub(crate) fn head(status: u16, media_type: &str) -> Parts {
    Response::builder().status(status).header("content-type", media_type).body(()).unwrap().into_parts().0
}

/// A message that is not streamed.
pub(crate) fn document(content: &Value, stop_reason: &str) -> String {
    json!({
        "type": "message",
        "model": "claude-test-1",
        "content": content,
        "stop_reason": stop_reason,
        "usage": {"input_tokens": 11, "output_tokens": 7},
    })
    .to_string()
}

/// The stream of `events`.
pub(crate) fn stream(events: &[Value]) -> String {
    events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()))
        .collect()
}

/// The stream of a message; texts, thoughts and inputs are split into pieces of two characters.
pub(crate) fn streamed(content: &Value, stop_reason: &str) -> String {
    let usage = json!({"input_tokens": 11, "output_tokens": 1});
    let mut events =
        vec![json!({"type": "message_start", "message": {"model": "claude-test-1", "usage": usage}})];
    for (index, block) in content.as_array().unwrap().iter().enumerate() {
        let (start, kind, member, text) = match block["type"].as_str().unwrap() {
            "text" => (json!({"type": "text", "text": ""}), "text_delta", "text", block["text"].clone()),
            "thinking" => {
                let start = json!({"type": "thinking", "thinking": ""});
                (start, "thinking_delta", "thinking", block["thinking"].clone())
            }
            "tool_use" => {
                let start = json!({"type": "tool_use", "id": "t", "name": block["name"], "input": {}});
                (start, "input_json_delta", "partial_json", json!(block["input"].to_string()))
            }
            _ => (block.clone(), "", "", json!("")),
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        let characters: Vec<char> = text.as_str().unwrap().chars().collect();
        events.extend(characters.chunks(2).map(|piece| {
            let delta = json!({"type": kind, member: piece.iter().collect::<String>()});
            json!({"type": "content_block_delta", "index": index, "delta": delta})
        }));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let delta = json!({"stop_reason": stop_reason});
    events.push(json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7}}));
    events.push(json!({"type": "message_stop"}));
    stream(&events)
}

/// Returns the text that arrived before the end, and the result.
pub(crate) fn read(wire: &Anthropic, call: &Call, body: &str) -> (String, Result<Completion, Fault>) {
    let media_type = if body.starts_with('{') { "application/json" } else { "text/event-stream" };
    let mut decoder = wire.decoder(call, &head(200, media_type));
    let mut deltas = Deltas::new();
    let mut done = decoder.push(body.as_bytes(), &mut deltas);
    if done.is_ok() && !matches!(deltas.back(), Some(Delta::End(_))) {
        done = decoder.end(&mut deltas);
    }
    let mut completion = Completion::new("");
    for delta in deltas {
        completion.push(delta);
    }
    (completion.text.clone(), done.map(|()| completion))
}

/// The completion in a body.
pub(crate) fn completion(wire: &Anthropic, call: &Call, body: &str) -> Completion {
    read(wire, call, body).1.unwrap()
}

/// A call with a change.
pub(crate) fn with(mut call: Call, change: impl FnOnce(&mut Call)) -> Call {
    change(&mut call);
    call
}

/// The messages as a call has them.
pub(crate) fn shared(messages: impl IntoIterator<Item = Message>) -> Vec<Arc<Message>> {
    messages.into_iter().map(Arc::new).collect()
}
