//! The model's turns in Chat Completions.

use serde_json::{Value, json};

use crate::protocol::turn::{Turn, add_text, is_unfinished, items, set_part};

pub(super) use self::{read as event, read as whole};

/// Reads a response, or an event of a stream.
pub(super) fn read(turn: &mut Turn, body: &Value) {
    for choice in items(&body["choices"]) {
        let message = if choice["delta"].is_object() { &choice["delta"] } else { &choice["message"] };
        answer(turn, choice, message);
    }
}

fn answer(turn: &mut Turn, choice: &Value, message: &Value) {
    let number = choice["index"].as_u64().unwrap_or(0);
    for (nth, call) in items(&message["tool_calls"]).enumerate() {
        if call["type"] == "custom" {
            continue;
        }
        let (id, name) = (call["id"].as_str(), call["function"]["name"].as_str().unwrap_or_default());
        let key = (number, call["index"].as_u64().unwrap_or(nth as u64));
        let called = turn.called_by(key, id.unwrap_or_default(), !name.is_empty());
        if called.name.is_empty() {
            name.clone_into(&mut called.name);
        }
        called.arguments.push_str(call["function"]["arguments"].as_str().unwrap_or_default());
    }
    // Some servers send the text under its name in the older Completions API.
    let texts = [&message["content"], &message["text"], &choice["text"]];
    turn.push_text(number, texts.into_iter().find(|text| !text.is_null()).unwrap_or(&Value::Null));
    let is_refusal = |part: &Value| part["type"] == "refusal";
    let is_refused = message["refusal"].as_str().is_some_and(|reason| !reason.is_empty())
        || items(&message["content"]).any(is_refusal);
    if is_refused || is_unfinished(&choice["finish_reason"]) {
        turn.unfinished.push(number);
    }
}

/// Replaces the text of an answer in a response, which is whole then.
pub(super) fn set_text(body: &mut Value, answer: u64, text: &str) {
    let choices = body["choices"].as_array_mut().into_iter().flatten();
    // Anything may stand in a response.
    let choices = choices.filter(|choice| choice.is_object() && is_message(&choice["message"]));
    for choice in choices.filter(|choice| choice["index"].as_u64().unwrap_or(0) == answer) {
        match &mut choice["message"]["content"] {
            parts @ Value::Array(_) => set_part(parts, "text", text),
            content => *content = text.into(),
        }
        // They are those of another text.
        choice["logprobs"] = Value::Null;
        if is_unfinished(&choice["finish_reason"]) {
            choice["finish_reason"] = "stop".into();
        }
    }
}

/// Returns whether a message can have a content.
pub(in crate::protocol) fn is_message(message: &Value) -> bool {
    message.is_object() || message.is_null()
}

/// Adds a message of the user to a request.
pub(in crate::protocol) fn add_message(body: &mut Value, text: &str) {
    if let Some(messages) = body["messages"].as_array_mut() {
        messages.push(json!({"role": "user", "content": text}));
    }
}

/// Sets the format of the answer.
pub(super) fn set_format(body: &mut Value, name: &str, schema: &Value) {
    let schema = json!({"name": name, "schema": schema, "strict": true});
    body["response_format"] = json!({"type": "json_schema", "json_schema": schema});
}

/// Adds instructions to the system message of a request, or as one.
pub(in crate::protocol) fn add_instructions(body: &mut Value, text: &str) {
    let Some(messages) = body["messages"].as_array_mut() else { return };
    let is_system = |message: &&mut Value| message["role"] == "system" || message["role"] == "developer";
    match messages.first_mut().filter(is_system) {
        Some(system) => add_text(&mut system["content"], text),
        None => messages.insert(0, json!({"role": "system", "content": text})),
    }
}
