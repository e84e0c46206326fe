//! The model's turns in Ollama's APIs.

use serde_json::Value;

use crate::protocol::openai;
use crate::protocol::turn::{Turn, is_unfinished, items};

pub(super) use self::{read as event, read as whole};
pub(super) use crate::protocol::openai::add_instructions;

/// Reads a response, or a line of a stream.
pub(super) fn read(turn: &mut Turn, body: &Value) {
    for call in items(&body["message"]["tool_calls"]) {
        let called = turn.called((0, turn.calls.len() as u64));
        called.name = call["function"]["name"].as_str().unwrap_or_default().to_owned();
        called.arguments = match &call["function"]["arguments"] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            arguments => arguments.to_string(),
        };
    }
    turn.push_text(0, &body["message"]["content"]);
    turn.push_text(0, &body["response"]);
    turn.is_unfinished |= is_unfinished(&body["done_reason"]);
}

/// Replaces the text of a response, which is whole then.
pub(super) fn set_text(body: &mut Value, _: u64, text: &str) {
    if body["response"].is_string() {
        body["response"] = text.into();
    } else if openai::is_message(&body["message"]) {
        body["message"]["content"] = text.into();
    }
    // They are those of another text.
    body.as_object_mut().and_then(|members| members.remove("logprobs"));
    if is_unfinished(&body["done_reason"]) {
        body["done_reason"] = "stop".into();
    }
}

/// Adds a message of the user to a request, which may be a prompt.
pub(super) fn add_message(body: &mut Value, text: &str) {
    match body["prompt"].as_str() {
        Some(prompt) => body["prompt"] = format!("{prompt}\n\n{text}").into(),
        None => openai::add_message(body, text),
    }
}

/// Sets the format of the answer.
pub(super) fn set_format(body: &mut Value, _: &str, schema: &Value) {
    body["format"] = schema.clone();
}
