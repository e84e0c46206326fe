//! Ollama's `/api/chat`.

use std::sync::Arc;

use formwork_ollama::Ollama;
use formwork_wire::Http;
use reqwest::RequestBuilder;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{BEARER, Bare, Framing, Piece, Wire, pieces};
use crate::oracle::ANSWER;

const MODEL: &str = "qwen3:8b";

pub(super) const WIRE: Wire = Wire {
    name: "ollama",
    base: "",
    paths: ["/api/chat"; 2],
    auth: BEARER,
    headers: &[],
    provider: |transport, stream| {
        Arc::new(Http::new(Ollama::new(MODEL).with_stream(stream), Arc::new(transport)))
    },
    bare: |request| {
        Some(Box::new(Client {
            system: request["messages"][0]["content"].as_str()?.to_owned(),
            format: request.get("format")?.clone(),
            options: request.get("options")?.clone(),
            stream: request["stream"] == true,
        }))
    },
    document: || line(ANSWER, true).to_string(),
    events,
    framing: Framing::Lines,
};

struct Client {
    system: String,
    format: Value,
    options: Value,
    stream: bool,
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: [Message<'a>; 2],
    stream: bool,
    format: &'a Value,
    options: &'a Value,
    truncate: bool,
    shift: bool,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'a str,
    content: &'a str,
}

#[derive(Deserialize)]
struct Line {
    message: Completion,
    done: bool,
}

#[derive(Deserialize)]
struct Completion {
    content: String,
}

impl Bare for Client {
    fn with_body(&self, request: RequestBuilder, input: &str) -> RequestBuilder {
        request.json(&Body {
            model: MODEL,
            messages: [
                Message { role: "system", content: &self.system },
                Message { role: "user", content: input },
            ],
            stream: self.stream,
            format: &self.format,
            options: &self.options,
            truncate: false,
            shift: false,
        })
    }

    fn text(&self, document: &[u8]) -> serde_json::Result<String> {
        Ok(serde_json::from_slice::<Line>(document)?.message.content)
    }

    fn piece(&self, event: &[u8]) -> serde_json::Result<Piece> {
        let line: Line = serde_json::from_slice(event)?;
        Ok(Piece { text: Some(line.message.content), is_last: line.done })
    }
}

fn line(text: &str, is_last: bool) -> Value {
    let mut line = json!({
        "model": MODEL, "created_at": "2025-11-21T04:40:00.123456789Z",
        "message": {"role": "assistant", "content": text}, "done": is_last,
    });
    if is_last {
        let counts = [
            ("total_duration", 4_883_583_458_u64),
            ("load_duration", 1_334_875),
            ("prompt_eval_count", 612),
            ("prompt_eval_duration", 342_546_000),
            ("eval_count", 238),
            ("eval_duration", 4_535_599_000),
        ];
        line["done_reason"] = json!("stop");
        for (name, count) in counts {
            line[name] = json!(count);
        }
    }
    line
}

fn events() -> Vec<String> {
    let lines = pieces().into_iter().map(|text| line(&text, false)).chain([line("", true)]);
    lines.map(|line| format!("{line}\n")).collect()
}
