//! Runs the conformance suite of all providers.

use std::process::ExitCode;
use std::sync::Arc;

use formwork_cohere::Cohere;
use formwork_conformance::{Protocol, Reply, SentRequest, ServerAnswer, Trouble};
use formwork_core::{Finish, SharedProvider};
use formwork_wire::http::Request;
use formwork_wire::{Bytes, Http, SharedTransport};
use serde_json::{Value, json};

fn main() -> ExitCode {
    formwork_conformance::provider(Chat).run()
}

/// Returns a text in two pieces.
fn halves(text: &str) -> [(&'static str, &str); 2] {
    let (first, second) = text.split_at(text.floor_char_boundary(text.len() / 2));
    [("text", first), ("text", second)]
}

/// Returns the events of an answer of these pieces of content.
fn events<'a>(pieces: impl Iterator<Item = (&'a str, &'a str)>, end: Value) -> Reply {
    let mut all =
        vec![json!({"type": "message-start", "id": "1", "delta": {"message": {"role": "assistant"}}})];
    let mut before = "";
    for (index, (kind, piece)) in pieces.enumerate() {
        if kind != before {
            let content = json!({"type": kind, kind: ""});
            all.push(
                json!({"type": "content-start", "index": index, "delta": {"message": {"content": content}}}),
            );
            before = kind;
        }
        all.push(json!({"type": "content-delta", "index": index, "delta": {"message": {"content": {kind: piece}}}}));
    }
    all.push(json!({"type": "content-end", "index": 0}));
    all.push(json!({"type": "message-end", "delta": end}));
    let body: String = all
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default()))
        .collect();
    Reply::new(200, "text/event-stream", body)
}

struct Chat;

impl Protocol for Chat {
    fn provider(&self, transport: SharedTransport) -> SharedProvider {
        Arc::new(Http::new(Cohere::new("command-test"), transport))
    }

    fn say(&self, completion: &ServerAnswer) -> Vec<Reply> {
        let mut content = Vec::new();
        if !completion.reasoning.is_empty() {
            content.push(json!({"type": "thinking", "thinking": completion.reasoning}));
        }
        content.push(json!({"type": "text", "text": completion.text}));
        let reason = match &completion.finish {
            Finish::Length => "MAX_TOKENS",
            Finish::Filtered | Finish::Refused => "ERROR_TOXIC",
            Finish::Other(reason) => reason,
            _ => "COMPLETE",
        };
        let tokens = json!({"input_tokens": completion.usage.input_tokens, "output_tokens": completion.usage.output_tokens});
        let whole = json!({
            "id": "1",
            "finish_reason": reason,
            "message": {"role": "assistant", "content": content},
            "usage": {"billed_units": {"input_tokens": 1, "output_tokens": 1}, "tokens": tokens},
        });
        let thoughts = [("thinking", completion.reasoning.as_str())];
        let thoughts = thoughts.into_iter().filter(|(_, text)| !text.is_empty());
        let end = json!({"finish_reason": reason, "usage": whole["usage"]});
        let events = events(thoughts.chain(halves(&completion.text)), end);
        vec![Reply::new(200, "application/json", whole.to_string()), events]
    }

    fn error(&self, status: u16, words: &str) -> Reply {
        Reply::new(status, "application/json", json!({"id": "1", "message": words}).to_string())
    }

    fn error_within(&self, text: &str, words: &str) -> Option<Reply> {
        Some(events(halves(text).into_iter(), json!({"finish_reason": "ERROR", "error": words})))
    }

    fn trouble(&self, trouble: Trouble) -> Vec<Reply> {
        let text = trouble.text();
        let answer = |mut message: Value, reason: &str| {
            message["role"] = json!("assistant");
            let whole = json!({"id": "1", "finish_reason": reason, "message": message,
                "usage": {"tokens": {"input_tokens": 11, "output_tokens": 7}}});
            vec![Reply::new(200, "application/json", whole.to_string())]
        };
        let streamed = |reason: &str| {
            let call = |kind: &str, call: Value| json!({"type": kind, "index": 0, "delta": {"message": {"tool_calls": call}}});
            let function = json!({"name": "thing", "arguments": ""});
            let (first, second) = text.split_at(text.floor_char_boundary(text.len() / 2));
            let piece = |piece: &str| call("tool-call-delta", json!({"function": {"arguments": piece}}));
            let events = [
                call("tool-call-start", json!({"id": "t", "type": "function", "function": function})),
                piece(first),
                piece(second),
                json!({"type": "tool-call-end", "index": 0}),
                json!({"type": "message-end", "delta": {"finish_reason": reason}}),
            ];
            let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
            Reply::new(200, "text/event-stream", body)
        };
        let function = json!({"name": "thing", "arguments": text});
        let called = json!({"tool_calls": [{"id": "t", "type": "function", "function": function}]});
        match trouble {
            Trouble::WrongKey => vec![self.error(401, text)],
            Trouble::NoCredit => vec![self.error(402, text)],
            Trouble::UnknownModel => vec![self.error(404, text)],
            Trouble::Overloaded => vec![self.error(503, text), self.error(529, text)],
            Trouble::SafetyBlock => answer(json!({"content": []}), "ERROR_TOXIC"),
            Trouble::Empty => answer(json!({}), "COMPLETE"),
            Trouble::OnlyReasoning => {
                answer(json!({"content": [{"type": "thinking", "thinking": text}]}), "MAX_TOKENS")
            }
            Trouble::CutToolCall => [answer(called, "MAX_TOKENS"), vec![streamed("MAX_TOKENS")]].concat(),
            Trouble::DoubleEncoded => [answer(called, "TOOL_CALL"), vec![streamed("TOOL_CALL")]].concat(),
            _ => self.error_within("{\"zulu\": ", text).into_iter().collect(),
        }
    }

    fn schema_complaints(&self) -> Vec<(u16, &'static str)> {
        vec![(400, "invalid request: schema is not valid: unsupported keyword allOf")]
    }

    fn read_request(&self, request: &Request<Bytes>) -> SentRequest {
        let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let some = |value: &Value| (!value.is_null()).then(|| value.clone());
        let schema = some(&body["response_format"]["schema"]);
        let messages = body["messages"].as_array().into_iter().flatten();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        SentRequest {
            json_object: body["response_format"]["type"] == "json_object" && schema.is_none(),
            schema,
            tool: some(&body["tools"][0]["function"]["parameters"]),
            temperature: body["temperature"].as_f64(),
            top_p: body["p"].as_f64(),
            seed: body["seed"].as_u64(),
            frequency_penalty: body["frequency_penalty"].as_f64(),
            max_tokens: body["max_tokens"].as_u64(),
            messages: messages.map(|message| (text(&message["role"]), text(&message["content"]))).collect(),
        }
    }
}
