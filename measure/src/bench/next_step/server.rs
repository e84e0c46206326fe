//! A server that answers as a model would, over the protocols of all providers, and counts bytes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{Uri, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::model::{Damage, invoice, perfect};
use crate::Failure;

/// The bytes of the requests and of the texts of the answers of one extraction.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) calls: usize,
    pub(super) sent: usize,
    pub(super) answered: usize,
    /// Whether the extraction ended with a value.
    pub(super) is_done: bool,
}

/// The counts of each extraction, by the first segments of the paths of its requests: a name, and the damage of the first answer.
#[derive(Clone, Default)]
pub(super) struct Counted(Arc<Mutex<HashMap<(String, String), Counts>>>);

impl Counted {
    /// Notes that an extraction ended with a value. `taken` is the length of the texts that it read, if it may have stopped answers.
    pub(super) fn done(&self, name: &str, damage: &str, taken: Option<usize>) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = counts.entry((name.to_owned(), damage.to_owned())).or_default();
        (counts.is_done, counts.answered) = (true, taken.unwrap_or(counts.answered));
    }

    /// Returns the counts of an extraction that ended with a value.
    pub(super) fn of(&self, name: &str, damage: &str) -> Option<Counts> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.get(&(name.to_owned(), damage.to_owned())).copied().filter(|counts| counts.is_done)
    }
}

/// Starts a server; returns its address.
pub(super) async fn start() -> Result<(String, Counted), Failure> {
    let counted = Counted::default();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = format!("http://{}", listener.local_addr()?);
    let router = axum::Router::new().fallback(any(answer)).with_state(counted.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok((address, counted))
}

async fn answer(State(counted): State<Counted>, uri: Uri, body: Bytes) -> Response {
    let path = uri.path();
    let mut parts = path.split('/').skip(1).map(str::to_owned);
    let (name, damage) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    // The peers say so when they have a value.
    if parts.next().as_deref() == Some("done") {
        counted.done(&name, &damage, None);
        return ().into_response();
    }
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let asked =
        ["messages", "input", "contents"].iter().find_map(|member| request[*member].as_array()?.last());
    let mut counts = counted.0.lock().unwrap_or_else(PoisonError::into_inner);
    let counts = counts.entry((name, damage.clone())).or_default();
    let known = Damage::ALL.iter().find(|(name, _)| *name == damage).map(|(_, damage)| *damage);
    let damage = known.filter(|_| counts.calls == 0).unwrap_or(Damage::None);
    let text = match counts.calls {
        0 => damage.answer(&invoice()),
        _ => perfect(&asked.map(words).unwrap_or_default(), &invoice()),
    };
    counts.calls += 1;
    counts.sent += body.len();
    counts.answered += text.len();
    let is_cut = matches!(damage, Damage::Cut(_));
    let streams = request["stream"] == true || path.ends_with(":streamGenerateContent");
    let protocol = if path.ends_with("/chat/completions") {
        chat
    } else if path.ends_with("/responses") {
        responses
    } else if path.ends_with("/messages") {
        anthropic
    } else if path.ends_with("/api/chat") {
        ollama
    } else {
        gemini
    };
    let pieces: Vec<&str> = if streams { pieces(&text) } else { vec![&text] };
    let Said { media_type, body } = protocol(&pieces, is_cut, streams);
    ([(header::CONTENT_TYPE, media_type)], body).into_response()
}

/// Returns the text of a message.
fn words(message: &Value) -> String {
    let parts = [&message["content"], &message["parts"]];
    let whole = message["content"].as_str().map(str::to_owned);
    whole.unwrap_or_else(|| {
        parts
            .iter()
            .filter_map(|parts| parts.as_array())
            .flatten()
            .filter_map(|part| part["text"].as_str())
            .collect()
    })
}

/// Returns a text in pieces of about 40 bytes.
fn pieces(text: &str) -> Vec<&str> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(40.min(rest.len())));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// A response.
struct Said {
    media_type: &'static str,
    body: String,
}

impl Said {
    fn json(body: &Value) -> Self {
        Self { media_type: "application/json", body: body.to_string() }
    }

    fn events(events: impl IntoIterator<Item = Value>, end: &str) -> Self {
        let event = |event: Value| match event["type"].as_str() {
            Some(name) => format!("event: {name}\ndata: {event}\n\n"),
            None => format!("data: {event}\n\n"),
        };
        let body = events.into_iter().map(event).collect::<String>() + end;
        Self { media_type: "text/event-stream", body }
    }
}

fn chat(pieces: &[&str], is_cut: bool, streams: bool) -> Said {
    let finish = if is_cut { "length" } else { "stop" };
    let usage = json!({"prompt_tokens": 2000, "completion_tokens": 2000, "total_tokens": 4000});
    let of = |kind: &str, choice: Value| json!({"id": "c", "object": kind, "created": 1, "model": "m", "choices": [choice], "usage": null});
    if !streams {
        let message = json!({"role": "assistant", "content": pieces.concat(), "refusal": null});
        let mut body = of(
            "chat.completion",
            json!({"index": 0, "message": message, "logprobs": null, "finish_reason": finish}),
        );
        body["usage"] = usage;
        return Said::json(&body);
    }
    let event = |delta: Value, finish: Option<&str>| {
        of("chat.completion.chunk", json!({"index": 0, "delta": delta, "finish_reason": finish}))
    };
    let texts = pieces.iter().map(|text| event(json!({"content": text}), None));
    let last = json!({"id": "c", "object": "chat.completion.chunk", "choices": [], "usage": usage});
    Said::events(texts.chain([event(json!({}), Some(finish)), last]), "data: [DONE]\n\n")
}

fn responses(pieces: &[&str], is_cut: bool, streams: bool) -> Said {
    let (status, kind) =
        if is_cut { ("incomplete", "response.incomplete") } else { ("completed", "response.completed") };
    let part = json!({"type": "output_text", "annotations": [], "text": pieces.concat()});
    let item =
        json!({"id": "m", "type": "message", "status": status, "content": [part], "role": "assistant"});
    let response = json!({
        "id": "r", "object": "response", "created_at": 1, "status": status, "error": null, "model": "m", "output": [item],
        "incomplete_details": if is_cut { json!({"reason": "max_output_tokens"}) } else { Value::Null },
        "usage": {"input_tokens": 2000, "output_tokens": 2000, "total_tokens": 4000},
    });
    if !streams {
        return Said::json(&response);
    }
    let text = |text: &&str| json!({"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0, "delta": text});
    let last = json!({"type": kind, "response": response});
    let events = pieces.iter().map(text).chain([last]).enumerate().map(|(number, mut event)| {
        event["sequence_number"] = json!(number);
        event
    });
    Said::events(events, "")
}

fn anthropic(pieces: &[&str], is_cut: bool, streams: bool) -> Said {
    let reason = if is_cut { "max_tokens" } else { "end_turn" };
    let message = |content: Value, reason: Option<&str>| {
        json!({
            "id": "m", "type": "message", "role": "assistant", "model": "m", "content": content, "stop_reason": reason,
            "stop_sequence": null, "usage": {"input_tokens": 2000, "output_tokens": 2000},
        })
    };
    if !streams {
        return Said::json(&message(json!([{"type": "text", "text": pieces.concat()}]), Some(reason)));
    }
    let text = |text: &&str| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}});
    let begin = [
        json!({"type": "message_start", "message": message(json!([]), None)}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
    ];
    let end = [
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": 2000}}),
        json!({"type": "message_stop"}),
    ];
    Said::events(begin.into_iter().chain(pieces.iter().map(text)).chain(end), "")
}

fn gemini(pieces: &[&str], is_cut: bool, streams: bool) -> Said {
    let response = |text: &str, finish: Option<&str>| {
        let mut candidate = json!({"content": {"parts": [{"text": text}], "role": "model"}, "index": 0});
        if let Some(finish) = finish {
            candidate["finishReason"] = json!(finish);
        }
        json!({"candidates": [candidate], "usageMetadata": {"promptTokenCount": 2000, "candidatesTokenCount": 2000, "totalTokenCount": 4000}})
    };
    let finish = Some(if is_cut { "MAX_TOKENS" } else { "STOP" });
    if !streams {
        return Said::json(&response(&pieces.concat(), finish));
    }
    Said::events(pieces.iter().map(|text| response(text, None)).chain([response("", finish)]), "")
}

fn ollama(pieces: &[&str], is_cut: bool, streams: bool) -> Said {
    let line = |text: &str, is_last: bool| {
        let mut line = json!({"model": "m", "created_at": "2026-01-01T00:00:00Z", "message": {"role": "assistant", "content": text}, "done": is_last});
        if is_last {
            line["done_reason"] = json!(if is_cut { "length" } else { "stop" });
            (line["prompt_eval_count"], line["eval_count"]) = (json!(2000), json!(2000));
        }
        line
    };
    if !streams {
        return Said::json(&line(&pieces.concat(), true));
    }
    let lines = pieces.iter().map(|text| line(text, false)).chain([line("", true)]);
    Said { media_type: "application/x-ndjson", body: lines.map(|line| format!("{line}\n")).collect() }
}
