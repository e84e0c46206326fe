//! The model's turns in the Messages API.

use serde_json::{Value, json};

use crate::protocol::turn::{Turn, add_text, is_unfinished, items, set_part};

pub(super) use crate::protocol::openai::add_message;

/// Reads a response.
pub(super) fn whole(turn: &mut Turn, body: &Value) {
    for (nth, part) in items(&body["content"]).enumerate() {
        block(turn, nth as u64, part);
    }
    turn.is_unfinished |= is_unfinished(&body["stop_reason"]);
}

fn block(turn: &mut Turn, nth: u64, block: &Value) {
    if block["type"] == "tool_use" {
        let called = turn.called((0, nth));
        called.name = block["name"].as_str().unwrap_or_default().to_owned();
        if block["input"].as_object().is_some_and(|input| !input.is_empty()) {
            called.arguments = block["input"].to_string();
        }
    }
    turn.push_text(0, &block["text"]);
}

/// Reads an event of a stream.
pub(super) fn event(turn: &mut Turn, data: &Value) {
    let nth = data["index"].as_u64().unwrap_or(0);
    match data["type"].as_str().unwrap_or_default() {
        "content_block_start" => block(turn, nth, &data["content_block"]),
        "content_block_delta" => {
            if let Some(piece) = data["delta"]["partial_json"].as_str() {
                turn.called((0, nth)).arguments.push_str(piece);
            }
            turn.push_text(0, &data["delta"]["text"]);
        }
        "message_delta" => turn.is_unfinished |= is_unfinished(&data["delta"]["stop_reason"]),
        _ => {}
    }
}

/// Replaces the text of a response, which is whole then.
pub(super) fn set_text(body: &mut Value, _: u64, text: &str) {
    set_part(&mut body["content"], "text", text);
    if is_unfinished(&body["stop_reason"]) {
        body["stop_reason"] = "end_turn".into();
    }
}

/// Sets the format of the answer.
pub(super) fn set_format(body: &mut Value, _: &str, schema: &Value) {
    body["output_config"]["format"] = json!({"type": "json_schema", "schema": schema});
}

/// Adds instructions to those of a request.
pub(super) fn add_instructions(body: &mut Value, text: &str) {
    add_text(&mut body["system"], text);
}
