//! Anthropic's Messages API.

use std::sync::Arc;

use formwork_anthropic::{API_KEY, Anthropic};
use formwork_wire::Http;
use reqwest::RequestBuilder;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Bare, Framing, Piece, Wire, named_event, pieces};
use crate::oracle::ANSWER;

const MODEL: &str = "claude-sonnet-4-6";

pub(super) const WIRE: Wire = Wire {
    name: "anthropic",
    base: "",
    paths: ["/v1/messages"; 2],
    auth: API_KEY,
    headers: &[("anthropic-version", "2023-06-01")],
    provider: |transport, stream| {
        Arc::new(Http::new(Anthropic::new(MODEL).with_stream(stream), Arc::new(transport)))
    },
    bare: |request| {
        Some(Box::new(Client {
            max_tokens: request["max_tokens"].as_u64()?,
            system: request.get("system")?.clone(),
            output_config: request.get("output_config")?.clone(),
            stream: request["stream"] == true,
        }))
    },
    document: || message(json!([{"type": "text", "text": ANSWER}]), json!("end_turn")).to_string(),
    events,
    framing: Framing::Sse,
};

struct Client {
    max_tokens: u64,
    system: Value,
    output_config: Value,
    stream: bool,
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u64,
    system: &'a Value,
    messages: [Message<'a>; 1],
    output_config: &'a Value,
    stream: bool,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'a str,
    content: [Text<'a>; 1],
}

#[derive(Serialize)]
struct Text<'a> {
    r#type: &'a str,
    text: &'a str,
}

#[derive(Deserialize)]
struct Answer {
    content: Vec<Block>,
}

#[derive(Deserialize)]
struct Block {
    #[serde(default)]
    text: String,
}

#[derive(Deserialize)]
struct Event<'a> {
    r#type: &'a str,
    delta: Option<Delta>,
}

#[derive(Deserialize)]
struct Delta {
    text: Option<String>,
}

impl Bare for Client {
    fn with_body(&self, request: RequestBuilder, input: &str) -> RequestBuilder {
        request.json(&Body {
            model: MODEL,
            max_tokens: self.max_tokens,
            system: &self.system,
            messages: [Message { role: "user", content: [Text { r#type: "text", text: input }] }],
            output_config: &self.output_config,
            stream: self.stream,
        })
    }

    fn text(&self, document: &[u8]) -> serde_json::Result<String> {
        let answer: Answer = serde_json::from_slice(document)?;
        Ok(answer.content.into_iter().map(|block| block.text).collect())
    }

    fn piece(&self, event: &[u8]) -> serde_json::Result<Piece> {
        let Event { r#type, delta } = serde_json::from_slice(event)?;
        Ok(Piece { text: delta.and_then(|delta| delta.text), is_last: r#type == "message_stop" })
    }
}

fn message(content: Value, stop_reason: Value) -> Value {
    json!({
        "model": "claude-sonnet-4-6", "id": "msg_01XFDUDYJgAACzvnptvVoYEL", "type": "message", "role": "assistant",
        "content": content, "stop_reason": stop_reason, "stop_sequence": null,
        "usage": {
            "input_tokens": 612, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
            "output_tokens": 238, "service_tier": "standard",
        },
    })
}

fn events() -> Vec<String> {
    let mut events = vec![
        json!({"type": "message_start", "message": message(json!([]), Value::Null)}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "ping"}),
    ];
    events.extend(pieces().iter().map(
        |text| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
    ));
    events.extend([
        json!({"type": "content_block_stop", "index": 0}),
        json!({
            "type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null},
            "usage": {"input_tokens": 612, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 238},
        }),
        json!({"type": "message_stop"}),
    ]);
    events.iter().map(named_event).collect()
}
