//! Acme's protocol against the suite that every provider of Formwork runs.

use std::process::ExitCode;
use std::sync::Arc;

use acme_provider::{Acme, AcmeBatches, add_to};
use formwork::config::{Config, ConfigError, Section};
use formwork::core::{Finish, SharedProvider};
use formwork::providers::Providers;
use formwork::wire::batch::SharedBatchApi;
use formwork::wire::http::Request;
use formwork::wire::{Bytes, Http, SharedTransport};
use formwork_conformance::{
    BatchOutcome, BatchProtocol, BatchScene, Protocol, Reply, SentRequest, ServerAnswer, ServerOfSection,
};
use serde_json::{Value, json};

fn main() -> ExitCode {
    let suite = formwork_conformance::provider(Server).batches(Server);
    let suite = suite.pass_through("acme", |server| {
        let raw = section(server).and_then(|section| add_to(Providers::builtin()).raw(&section));
        Ok(raw.map_err(|error| error.to_string())?.ok_or("the section has no pass-through")?.transport)
    });
    let suite = suite.batches_of_section("acme", |server| {
        let api = section(server).and_then(|section| add_to(Providers::builtin()).batch(&section));
        Ok(api.map_err(|error| error.to_string())?.ok_or("the section has no batch API")?)
    });
    suite.run()
}

fn section(server: &ServerOfSection) -> Result<Section, ConfigError> {
    let (url, key) = (&server.base_url, server.key_file.display().to_string());
    let text = format!(
        "[providers.a]\nkind = \"acme\"\nmodel = \"anvil-1\"\nbase_url = {url:?}\napi_key_file = {key:?}\n"
    );
    Config::from_toml(&text)?.section("a").cloned()
}

/// The server's side of the protocol.
struct Server;

impl Server {
    /// The document that ends an answer.
    fn end(completion: &ServerAnswer) -> Value {
        let stopped = match &completion.finish {
            Finish::Length => "limit",
            Finish::Refused => "declined",
            Finish::Filtered => "filtered",
            Finish::Other(reason) => reason,
            _ => "end",
        };
        let tokens =
            json!({"read": completion.usage.input_tokens, "written": completion.usage.output_tokens});
        json!({"stopped": stopped, "tokens": tokens, "engine": "anvil-1"})
    }

    fn document(completion: &ServerAnswer) -> Value {
        let mut document = Self::end(completion);
        document["reply"] = json!(completion.text);
        document
    }
}

impl BatchProtocol for Server {
    fn api(&self, transport: SharedTransport) -> SharedBatchApi {
        Arc::new(AcmeBatches::new(Acme::new("anvil-1"), transport))
    }

    fn replies(&self, scene: &BatchScene) -> Vec<Reply> {
        let line = |(id, outcome): &(String, BatchOutcome)| match outcome {
            BatchOutcome::Answer(answer) => {
                json!({"id": id, "status": 200, "answer": Self::document(answer)})
            }
            BatchOutcome::Error(status, words) => {
                json!({"id": id, "status": status, "answer": {"problem": words}})
            }
            BatchOutcome::Unprocessed => json!({"id": id}),
        };
        let body = match scene {
            BatchScene::Accepted { id } => json!({"night": id}).to_string(),
            BatchScene::Listed { id, key, .. } => json!({"data": [{"night": id, "name": key}]}).to_string(),
            BatchScene::Open { finished, .. } => json!({"state": "running", "done": finished}).to_string(),
            BatchScene::Ended { .. } => json!({"state": "over"}).to_string(),
            BatchScene::Results(results) => {
                results.iter().map(|result| format!("{}\n", line(result))).collect()
            }
            BatchScene::Cancelled { .. } => json!({}).to_string(),
        };
        vec![Reply::new(200, "application/json", body)]
    }

    fn error(&self, status: u16, words: &str) -> Reply {
        Protocol::error(self, status, words)
    }
}

impl Protocol for Server {
    fn provider(&self, transport: SharedTransport) -> SharedProvider {
        Arc::new(Http::new(Acme::new("anvil-1"), transport))
    }

    fn say(&self, completion: &ServerAnswer) -> Vec<Reply> {
        // The API does not return reasoning.
        if !completion.reasoning.is_empty() {
            return Vec::new();
        }
        let end = Self::end(completion);
        let characters: Vec<char> = completion.text.chars().collect();
        // Few characters per line, as real models send; more for long texts, to limit the duration of the suite.
        let pieces = characters.chunks((characters.len() / 500).max(3));
        let pieces = pieces.map(|piece| json!({"piece": piece.iter().collect::<String>()}));
        let lines: String = pieces.chain([end]).map(|line| format!("{line}\n")).collect();
        vec![
            Reply::new(200, "application/json", Self::document(completion).to_string()),
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
