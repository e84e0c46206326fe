//! The model's turns in the Responses API.

use serde_json::{Value, json};

use crate::protocol::turn::{Turn, add_text, items, set_part};

/// Reads a response.
pub(super) fn whole(turn: &mut Turn, body: &Value) {
    for (nth, item) in items(&body["output"]).enumerate() {
        read_item(turn, nth as u64, item);
    }
    turn.is_unfinished |= body["status"] == "incomplete";
}

fn read_item(turn: &mut Turn, nth: u64, item: &Value) {
    if item["type"] == "function_call" {
        let called = turn.called((0, nth));
        called.name = item["name"].as_str().unwrap_or_default().to_owned();
        called.arguments = item["arguments"].as_str().unwrap_or_default().to_owned();
    }
    let mut text = String::new();
    for part in items(&item["content"]).filter(|_| item["type"] == "message") {
        text.push_str(part["text"].as_str().unwrap_or_default());
        turn.is_unfinished |= part["type"] == "refusal";
    }
    // The item repeats the text of the events before it.
    if !text.is_empty() && !turn.text(0).ends_with(&text) {
        turn.push_text(0, &text.into());
    }
}

/// Reads an event of a stream.
pub(super) fn event(turn: &mut Turn, data: &Value) {
    let nth = data["output_index"].as_u64().unwrap_or(0);
    match data["type"].as_str().unwrap_or_default() {
        "response.output_item.added" | "response.output_item.done" => read_item(turn, nth, &data["item"]),
        "response.function_call_arguments.delta" => {
            turn.called((0, nth)).arguments.push_str(data["delta"].as_str().unwrap_or_default());
        }
        "response.output_text.delta" => turn.push_text(0, &data["delta"]),
        "response.refusal.delta" | "response.incomplete" => turn.is_unfinished = true,
        _ => {}
    }
}

/// Replaces the text of a response, which is whole then.
pub(super) fn set_text(body: &mut Value, _: u64, text: &str) {
    let items = body["output"].as_array_mut().into_iter().flatten();
    // A turn may have several messages: its text stands in the first, and the others have none.
    for (nth, item) in items.filter(|item| item["type"] == "message").enumerate() {
        set_part(&mut item["content"], "output_text", if nth == 0 { text } else { "" });
        // They are those of another text.
        let parts = item["content"].as_array_mut().into_iter().flatten();
        parts.filter_map(|part| part.get_mut("logprobs")).for_each(|tokens| *tokens = json!([]));
        if item["status"] == "incomplete" {
            item["status"] = "completed".into();
        }
    }
    if body["status"] == "incomplete" {
        (body["status"], body["incomplete_details"]) = ("completed".into(), Value::Null);
    }
}

/// Adds a message of the user to a request, whose input may be a text.
pub(super) fn add_message(body: &mut Value, text: &str) {
    let message = json!({"role": "user", "content": text});
    match &mut body["input"] {
        Value::Array(messages) => messages.push(message),
        input => {
            let first = json!({"role": "user", "content": input.take()});
            *input = json!([first, message]);
        }
    }
}

/// Sets the format of the answer.
pub(super) fn set_format(body: &mut Value, name: &str, schema: &Value) {
    body["text"]["format"] = json!({"type": "json_schema", "name": name, "schema": schema, "strict": true});
}

/// Adds instructions to those of a request.
pub(super) fn add_instructions(body: &mut Value, text: &str) {
    add_text(&mut body["instructions"], text);
}
