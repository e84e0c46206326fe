//! Google's `generateContent`.

use std::sync::Arc;

use formwork_gemini::Gemini;
use formwork_wire::Http;
use reqwest::RequestBuilder;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Bare, Framing, Piece, Wire, pieces};
use crate::oracle::ANSWER;

pub(super) const WIRE: Wire = Wire {
    name: "gemini",
    base: "",
    paths: [
        "/v1beta/models/gemini-2.5-flash:generateContent",
        "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
    ],
    auth: Gemini::AUTH,
    headers: &[],
    provider: |transport, stream| {
        Arc::new(Http::new(Gemini::new("gemini-2.5-flash").with_stream(stream), Arc::new(transport)))
    },
    bare: |request| {
        Some(Box::new(Client {
            system: request.get("systemInstruction")?.clone(),
            generation: request.get("generationConfig")?.clone(),
        }))
    },
    document: || format!("{:#}", response(ANSWER, true)),
    events,
    framing: Framing::Sse,
};

struct Client {
    system: Value,
    generation: Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    system_instruction: &'a Value,
    contents: [Content<'a>; 1],
    generation_config: &'a Value,
}

#[derive(Serialize)]
struct Content<'a> {
    role: &'a str,
    parts: [Part<'a>; 1],
}

#[derive(Serialize)]
struct Part<'a> {
    text: &'a str,
}

#[derive(Deserialize)]
struct Answer {
    candidates: Vec<Candidate>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    content: Parts,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Parts {
    parts: Vec<Text>,
}

#[derive(Deserialize)]
struct Text {
    text: String,
}

impl Answer {
    fn piece(self) -> Piece {
        let Some(candidate) = self.candidates.into_iter().next() else { return Piece::default() };
        let text = candidate.content.parts.into_iter().map(|part| part.text).reduce(|all, more| all + &more);
        Piece { text, is_last: candidate.finish_reason.is_some() }
    }
}

impl Bare for Client {
    fn with_body(&self, request: RequestBuilder, input: &str) -> RequestBuilder {
        request.json(&Body {
            system_instruction: &self.system,
            contents: [Content { role: "user", parts: [Part { text: input }] }],
            generation_config: &self.generation,
        })
    }

    fn text(&self, document: &[u8]) -> serde_json::Result<String> {
        Ok(serde_json::from_slice::<Answer>(document)?.piece().text.unwrap_or_default())
    }

    fn piece(&self, event: &[u8]) -> serde_json::Result<Piece> {
        Ok(serde_json::from_slice::<Answer>(event)?.piece())
    }
}

fn response(text: &str, is_last: bool) -> Value {
    let mut candidate = json!({"content": {"parts": [{"text": text}], "role": "model"}});
    if is_last {
        candidate["finishReason"] = json!("STOP");
    }
    candidate["index"] = json!(0);
    json!({
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": 612, "candidatesTokenCount": 238, "totalTokenCount": 850,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 612}],
        },
        "modelVersion": "gemini-2.5-flash", "responseId": "hPEfaZ3hLqmQ7M8P6u2WkQs",
    })
}

fn events() -> Vec<String> {
    let pieces = pieces();
    let last = pieces.len() - 1;
    let events = pieces.iter().enumerate().map(|(place, text)| response(text, place == last));
    events.map(|event| format!("data: {event}\n\n")).collect()
}
