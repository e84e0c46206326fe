//! Acme's protocol against the suite that every provider of Formwork runs.

use std::process::ExitCode;
use std::sync::Arc;

use acme_provider::Acme;
use formwork::core::{Finish, SharedProvider};
use formwork::wire::http::Request;
use formwork::wire::{Bytes, Http, SharedTransport};
use formwork_conformance::{Protocol, Reply, SentRequest, ServerAnswer};
use serde_json::{Value, json};

fn main() -> ExitCode {
    formwork_conformance::provider(Server).run()
}

/// The server's side of the protocol.
struct Server;

impl Protocol for Server {
    fn provider(&self, transport: SharedTransport) -> SharedProvider {
        Arc::new(Http::new(Acme::new("anvil-1"), transport))
    }

    fn say(&self, completion: &ServerAnswer) -> Vec<Reply> {
        // The API does not return reasoning.
        if !completion.reasoning.is_empty() {
            return Vec::new();
        }
        let stopped = match &completion.finish {
            Finish::Length => "limit",
            Finish::Refused => "declined",
            Finish::Filtered => "filtered",
            Finish::Other(reason) => reason,
            _ => "end",
        };
        let tokens =
            json!({"read": completion.usage.input_tokens, "written": completion.usage.output_tokens});
        let end = json!({"stopped": stopped, "tokens": tokens, "engine": "anvil-1"});
        let mut document = end.clone();
        document["reply"] = json!(completion.text);
        let characters: Vec<char> = completion.text.chars().collect();
        // Few characters per line, as real models send; more for long texts, to limit the duration of the suite.
        let pieces = characters.chunks((characters.len() / 500).max(3));
        let pieces = pieces.map(|piece| json!({"piece": piece.iter().collect::<String>()}));
        let lines: String = pieces.chain([end]).map(|line| format!("{line}\n")).collect();
        vec![
            Reply::new(200, "application/json", document.to_string()),
            Reply::new(200, "application/x-ndjson", lines),
        ]
    }

    fn error(&self, status: u16, words: &str) -> Reply {
        Reply::new(status, "application/json", json!({"problem": words}).to_string())
    }

    fn error_within(&self, text: &str, words: &str) -> Option<Reply> {
        let lines = format!("{}\n{}\n", json!({"piece": text}), json!({"problem": words}));
        Some(Reply::new(200, "application/x-ndjson", lines))
    }

    fn schema_complaints(&self) -> Vec<(u16, &'static str)> {
        vec![(422, "shape not accepted: more than 40 members"), (400, "shape not accepted: unknown format")]
    }

    fn read_request(&self, request: &Request<Bytes>) -> SentRequest {
        let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let turns = body["turns"].as_array().into_iter().flatten();
        SentRequest {
            schema: body["shape"].get("schema").cloned(),
            json_object: body["shape"] == "any object",
            temperature: body["heat"].as_f64(),
            seed: body["seed"].as_u64(),
            max_tokens: body["limit"].as_u64(),
            messages: turns.map(|turn| (text(&turn["speaker"]), text(&turn["says"]))).collect(),
            ..SentRequest::default()
        }
    }
}
