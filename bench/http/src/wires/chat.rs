//! OpenAI's Chat Completions.

use std::sync::Arc;

use formwork_openai::OpenAi;
use formwork_wire::Http;
use reqwest::RequestBuilder;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{BEARER, Bare, Framing, Piece, Wire, pieces};
use crate::oracle::{ANSWER, MODEL};

pub(super) const WIRE: Wire = Wire {
    name: "chat",
    base: "/v1",
    paths: ["/chat/completions"; 2],
    auth: BEARER,
    headers: &[],
    provider: |transport, stream| {
        Arc::new(Http::new(OpenAi::new(MODEL).with_stream(stream), Arc::new(transport)))
    },
    bare: |request| {
        Some(Box::new(Client {
            system: request["messages"][0]["content"].as_str()?.to_owned(),
            response_format: request.get("response_format")?.clone(),
            temperature: request["temperature"].as_f64(),
            stream: request["stream"] == true,
        }))
    },
    document,
    events,
    framing: Framing::Sse,
};

struct Client {
    system: String,
    response_format: Value,
    temperature: Option<f64>,
    stream: bool,
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: [Message<'a>; 2],
    response_format: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'a str,
    content: &'a str,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Deserialize)]
struct Answer {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(alias = "delta")]
    message: Completion,
}

#[derive(Deserialize)]
struct Completion {
    #[serde(default)]
    content: Option<String>,
}

impl Answer {
    fn content(self) -> Option<String> {
        self.choices.into_iter().next().and_then(|choice| choice.message.content)
    }
}

impl Bare for Client {
    fn with_body(&self, request: RequestBuilder, input: &str) -> RequestBuilder {
        request.json(&Body {
            model: MODEL,
            messages: [
                Message { role: "system", content: &self.system },
                Message { role: "user", content: input },
            ],
            response_format: &self.response_format,
            temperature: self.temperature,
            stream: self.stream,
            stream_options: self.stream.then_some(StreamOptions { include_usage: true }),
        })
    }

    fn text(&self, document: &[u8]) -> serde_json::Result<String> {
        Ok(serde_json::from_slice::<Answer>(document)?.content().unwrap_or_default())
    }

    fn piece(&self, event: &[u8]) -> serde_json::Result<Piece> {
        if event == b"[DONE]" {
            return Ok(Piece { text: None, is_last: true });
        }
        Ok(Piece { text: serde_json::from_slice::<Answer>(event)?.content(), is_last: false })
    }
}

fn document() -> String {
    json!({
        "id": ID, "object": "chat.completion", "created": 1_763_700_000, "model": "gpt-4.1-mini-2025-04-14",
        "choices": [{
            "index": 0,
            "message": {"role": "assistant", "content": ANSWER, "refusal": null, "annotations": []},
            "logprobs": null,
            "finish_reason": "stop",
        }],
        "usage": usage(),
        "service_tier": "default",
        "system_fingerprint": "fp_6f2eabb9a5",
    })
    .to_string()
}

/// Returns the events of a stream. The first has no text, and the last three end the stream.
pub(crate) fn events() -> Vec<String> {
    let mut events = vec![event(&json!({"role": "assistant", "content": "", "refusal": null}), Value::Null)];
    events.extend(pieces().iter().map(|text| piece(text)));
    events.push(event(&json!({}), json!("stop")));
    events.push(framed(&json!({"id": ID, "object": CHUNK, "choices": [], "usage": usage()}).to_string()));
    events.push(framed("[DONE]"));
    events
}

const ID: &str = "chatcmpl-BYtq3fGvdP2MsXkGz9cH0ePzj5uKd";
const CHUNK: &str = "chat.completion.chunk";

/// Returns the event with a piece of text.
pub(crate) fn piece(text: &str) -> String {
    event(&json!({"content": text}), Value::Null)
}

fn event(delta: &Value, finish: Value) -> String {
    let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish});
    let chunk = json!({
        "id": ID, "object": CHUNK, "created": 1_763_700_000, "model": "gpt-4.1-mini-2025-04-14",
        "service_tier": "default", "system_fingerprint": "fp_6f2eabb9a5", "choices": [choice], "usage": null,
    });
    framed(&chunk.to_string())
}

fn framed(data: &str) -> String {
    format!("data: {data}\n\n")
}

fn usage() -> Value {
    json!({
        "prompt_tokens": 612, "completion_tokens": 238, "total_tokens": 850,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0, "audio_tokens": 0, "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
        },
    })
}
