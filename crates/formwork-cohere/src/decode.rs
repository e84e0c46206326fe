//! Decodes a response into deltas.

use formwork_core::{Delta, Fault, FaultKind, Finish, ToolCall, Usage};
use formwork_wire::{Deltas, quoted};
use serde_json::Value;

/// Reads a response that is one JSON document. `carrier` is the name of the tool whose arguments are the document.
/// `input_tokens` is the estimate for responses without usage.
pub(crate) fn document(
    body: &[u8],
    carrier: Option<&str>,
    input_tokens: u64,
    out: &mut Deltas,
) -> Result<(), Fault> {
    let bad = |what: &str| {
        Fault::new(FaultKind::BadWire, format!("{what}: {}", quoted(&String::from_utf8_lossy(body))))
    };
    let document: Value =
        serde_json::from_slice(body).map_err(|_| bad("the response is not JSON of the chat API"))?;
    let Some(message) = document["message"].as_object() else {
        return Err(bad("the response has no `message`"));
    };
    let (mut text, mut answered) = (String::new(), 0);
    match message.get("content") {
        Some(Value::String(content)) => text.push_str(content),
        content => {
            for block in content.and_then(Value::as_array).into_iter().flatten() {
                text.push_str(block["text"].as_str().unwrap_or_default());
                let thought = block["thinking"].as_str().unwrap_or_default();
                if !thought.is_empty() {
                    answered += thought.len();
                    out.push_back(Delta::Reasoning(thought.to_owned()));
                }
            }
        }
    }
    let calls = message.get("tool_calls").and_then(Value::as_array);
    let carried = carrier.and_then(|name| {
        let call = calls?.iter().find(|call| call["function"]["name"] == name)?;
        Some(match &call["function"]["arguments"] {
            Value::String(arguments) => inner(arguments),
            Value::Null => String::new(),
            arguments => arguments.to_string(),
        })
    });
    let is_carried = carried.is_some();
    let text = carried.unwrap_or(text);
    answered += text.len();
    if !text.is_empty() {
        out.push_back(Delta::Text(text));
    }
    for call in calls.into_iter().flatten().filter(|_| carrier.is_none()) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let arguments = match &call["function"]["arguments"] {
            Value::String(arguments) => arguments.clone(),
            arguments => arguments.to_string(),
        };
        answered += arguments.len();
        out.push_back(Delta::ToolCall(ToolCall::new(
            text(&call["id"]),
            text(&call["function"]["name"]),
            arguments,
        )));
    }
    let finish = match document["finish_reason"].as_str().unwrap_or_default() {
        "MAX_TOKENS" => Finish::Length,
        "ERROR_TOXIC" => Finish::Refused,
        "TOOL_CALL" if !is_carried => Finish::ToolCall,
        reason @ ("ERROR" | "TIMEOUT") => {
            let message = format!("the server ended the response early with `finish_reason` {reason}");
            return Err(Fault::new(FaultKind::Overloaded, message));
        }
        // `COMPLETE`, `STOP_SEQUENCE`, and the call of the forced tool.
        _ => Finish::Stop,
    };
    // `tokens` counts what the model read and wrote; `billed_units` leaves out a part of it.
    let count = |name: &str| document["usage"]["tokens"][name].as_u64();
    let usage = match (count("input_tokens"), count("output_tokens")) {
        (Some(input), Some(output)) => {
            let cached = document["usage"]["cached_tokens"].as_u64().unwrap_or_default();
            Usage::new(input, output).with_cached(cached)
        }
        _ => Usage::new(input_tokens, (answered as u64).div_ceil(4)).with_estimated(true),
    };
    out.push_back(Delta::End { finish, usage, closed_at: None, restrained: false, model: None });
    Ok(())
}

/// Returns the document in a tool's arguments. Some models write it as text inside a string.
fn inner(arguments: &str) -> String {
    match serde_json::from_str(arguments) {
        Ok(Value::String(text)) => text,
        _ => arguments.to_owned(),
    }
}
