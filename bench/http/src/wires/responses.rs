//! OpenAI's Responses API.

use std::sync::Arc;

use formwork_openai::{Api, OpenAi};
use formwork_wire::Http;
use reqwest::RequestBuilder;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{BEARER, Bare, Framing, Piece, Wire, named_event, pieces};
use crate::oracle::{ANSWER, MODEL, SYSTEM, schema};

pub(super) const WIRE: Wire = Wire {
    name: "responses",
    base: "/v1",
    paths: ["/responses"; 2],
    auth: BEARER,
    headers: &[],
    provider: |transport, stream| {
        let codec = OpenAi::new(MODEL).with_stream(stream).with_api(Api::Responses);
        Arc::new(Http::new(codec, Arc::new(transport)))
    },
    bare: |request| {
        Some(Box::new(Client {
            instructions: request["instructions"].as_str()?.to_owned(),
            text: request.get("text")?.clone(),
            temperature: request["temperature"].as_f64(),
            stream: request["stream"] == true,
        }))
    },
    document: || response("completed", json!([message("completed")])).to_string(),
    events,
    framing: Framing::Sse,
};

struct Client {
    instructions: String,
    text: Value,
    temperature: Option<f64>,
    stream: bool,
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    instructions: &'a str,
    input: [Message<'a>; 1],
    text: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    stream: bool,
    store: bool,
}

#[derive(Serialize)]
struct Message<'a> {
    r#type: &'a str,
    role: &'a str,
    content: [InputText<'a>; 1],
}

#[derive(Serialize)]
struct InputText<'a> {
    r#type: &'a str,
    text: &'a str,
}

#[derive(Deserialize)]
struct Answer {
    output: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    content: Vec<OutputText>,
}

#[derive(Deserialize)]
struct OutputText {
    #[serde(default)]
    text: String,
}

#[derive(Deserialize)]
struct Event<'a> {
    r#type: &'a str,
    delta: Option<String>,
}

impl Bare for Client {
    fn with_body(&self, request: RequestBuilder, input: &str) -> RequestBuilder {
        let content = [InputText { r#type: "input_text", text: input }];
        request.json(&Body {
            model: MODEL,
            instructions: &self.instructions,
            input: [Message { r#type: "message", role: "user", content }],
            text: &self.text,
            temperature: self.temperature,
            stream: self.stream,
            store: false,
        })
    }

    fn text(&self, document: &[u8]) -> serde_json::Result<String> {
        let answer: Answer = serde_json::from_slice(document)?;
        Ok(answer.output.into_iter().flat_map(|item| item.content).map(|part| part.text).collect())
    }

    fn piece(&self, event: &[u8]) -> serde_json::Result<Piece> {
        let Event { r#type, delta } = serde_json::from_slice(event)?;
        let text = delta.filter(|_| r#type == "response.output_text.delta");
        Ok(Piece { text, is_last: r#type == "response.completed" })
    }
}

const ID: &str = "msg_68a1c0f0e9c4819d8f6f6f1b2d3c4e5f0a1b2c3d4e5f6071";

fn message(status: &str) -> Value {
    let content = match status {
        "completed" => json!([part(ANSWER)]),
        _ => json!([]),
    };
    json!({"id": ID, "type": "message", "status": status, "content": content, "role": "assistant"})
}

fn part(text: &str) -> Value {
    json!({"type": "output_text", "annotations": [], "logprobs": [], "text": text})
}

/// Returns a response, which repeats the instructions and the schema of the request.
fn response(status: &str, output: Value) -> Value {
    let format = json!({
        "type": "json_schema", "description": null, "name": "ai_score",
        "schema": schema().unwrap_or_default(), "strict": true,
    });
    let usage = json!({
        "input_tokens": 612, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 238, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 850,
    });
    let usage = if status == "completed" { usage } else { Value::Null };
    json!({
        "id": "resp_68a1c0f0b3a0819dae2b1f0c5d6e7f8091a2b3c4d5e6f708", "object": "response", "created_at": 1_763_700_000,
        "status": status, "background": false, "error": null, "incomplete_details": null, "instructions": SYSTEM,
        "max_output_tokens": null, "max_tool_calls": null, "model": "gpt-4.1-mini-2025-04-14", "output": output,
        "parallel_tool_calls": true, "previous_response_id": null, "prompt_cache_key": null,
        "reasoning": {"effort": null, "summary": null}, "safety_identifier": null, "service_tier": "default",
        "store": false, "temperature": 1.0, "text": {"format": format, "verbosity": "medium"}, "tool_choice": "auto",
        "tools": [], "top_logprobs": 0, "top_p": 1.0, "truncation": "disabled", "usage": usage, "user": null,
        "metadata": {},
    })
}

fn events() -> Vec<String> {
    let at = json!({"item_id": ID, "output_index": 0, "content_index": 0});
    let inside = |more: Value| {
        let mut event = more;
        event.as_object_mut().zip(at.as_object()).map(|(event, at)| event.extend(at.clone()));
        event
    };
    let start = response("in_progress", json!([]));
    let mut events = vec![
        json!({"type": "response.created", "response": start}),
        json!({"type": "response.in_progress", "response": start}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": message("in_progress")}),
        inside(json!({"type": "response.content_part.added", "part": part("")})),
    ];
    events.extend(pieces().iter().map(|text| {
        inside(json!({
            "type": "response.output_text.delta", "delta": text, "logprobs": [], "obfuscation": "Zq3wLm8rT0xKd1",
        }))
    }));
    events.extend([
        inside(json!({"type": "response.output_text.done", "text": ANSWER, "logprobs": []})),
        inside(json!({"type": "response.content_part.done", "part": part(ANSWER)})),
        json!({"type": "response.output_item.done", "output_index": 0, "item": message("completed")}),
        json!({"type": "response.completed", "response": response("completed", json!([message("completed")]))}),
    ]);
    let numbered = events.into_iter().enumerate().map(|(number, mut event)| {
        event["sequence_number"] = json!(number);
        named_event(&event)
    });
    numbered.collect()
}
