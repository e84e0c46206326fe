//! Runs the conformance suite of all providers for both of Ollama's APIs; `FORMWORK_LIVE=ollama` runs it against a real server.

use std::process::ExitCode;
use std::sync::Arc;

use formwork_conformance::{Live, Protocol, Reply, SentRequest, ServerAnswer};
use formwork_core::{Finish, Provider, SharedProvider};
use formwork_http::HttpTransport;
use formwork_ollama::Ollama;
use formwork_wire::http::Request;
use formwork_wire::{Bytes, Http, SharedTransport};
use serde_json::{Map, Value, json};

fn main() -> ExitCode {
    let suite =
        formwork_conformance::provider(Native { generate: false }).protocol(Native { generate: true });
    suite.live(Live::new("ollama", "cargo xtask servers up ollama", ollama)).run()
}

/// The address at which `cargo xtask servers` starts Ollama.
const DEFAULT_URL: &str = "http://127.0.0.1:28434";

async fn ollama() -> Result<SharedProvider, String> {
    let url = std::env::var("FORMWORK_OLLAMA").unwrap_or_else(|_| DEFAULT_URL.to_owned());
    let transport = HttpTransport::new(&url).map_err(|error| error.to_string())?;
    // More threads would busy-wait for each other, which is slow on a shared machine.
    let options = Map::from_iter([("num_thread".to_owned(), json!(1))]);
    let wire = Ollama::new("smollm2").with_options(options).with_num_ctx(2048);
    let provider = Http::new(wire, Arc::new(transport));
    let found = provider.probe().await.map_err(|fault| fault.to_string())?;
    Ok(Arc::new(provider.with_capabilities(found)))
}

struct Native {
    generate: bool,
}

impl Native {
    /// Returns one line or document with the text at its place.
    fn piece(&self, text: &str, thinking: &str) -> Value {
        let mut piece = json!({"model": "smollm2", "created_at": "2026-11-21T12:00:00Z", "done": false});
        let place = if self.generate {
            piece["response"] = json!(text);
            &mut piece
        } else {
            piece["message"] = json!({"role": "assistant", "content": text});
            &mut piece["message"]
        };
        if !thinking.is_empty() {
            place["thinking"] = json!(thinking);
        }
        piece
    }

    fn end(&self, mut piece: Value, completion: &ServerAnswer) -> Value {
        piece["done"] = json!(true);
        piece["done_reason"] = json!(completion.finish.name());
        piece["prompt_eval_count"] = json!(completion.usage.input_tokens);
        piece["eval_count"] = json!(completion.usage.output_tokens);
        piece
    }
}

impl Protocol for Native {
    fn name(&self) -> &'static str {
        if self.generate { "generate" } else { "chat" }
    }

    fn provider(&self, transport: SharedTransport) -> SharedProvider {
        let wire = Ollama::new("smollm2");
        let wire = if self.generate { wire.with_generate() } else { wire };
        Arc::new(Http::new(wire, transport))
    }

    fn say(&self, completion: &ServerAnswer) -> Vec<Reply> {
        if matches!(completion.finish, Finish::Refused | Finish::Filtered) {
            return Vec::new();
        }
        let whole = self.end(self.piece(&completion.text, &completion.reasoning), completion);
        let mut lines = String::new();
        if !completion.reasoning.is_empty() {
            lines += &format!("{}\n", self.piece("", &completion.reasoning));
        }
        let characters: Vec<char> = completion.text.chars().collect();
        // Few characters per line, as real models send; more for long texts, to limit the duration of the suite.
        for piece in characters.chunks((characters.len() / 500).max(3)) {
            lines += &format!("{}\n", self.piece(&piece.iter().collect::<String>(), ""));
        }
        lines += &format!("{}\n", self.end(self.piece("", ""), completion));
        vec![
            Reply::new(200, "application/json; charset=utf-8", whole.to_string()),
            Reply::new(200, "application/x-ndjson", lines),
        ]
    }

    fn error(&self, status: u16, words: &str) -> Reply {
        Reply::new(status, "application/json; charset=utf-8", json!({"error": words}).to_string())
    }

    fn error_within(&self, text: &str, words: &str) -> Option<Reply> {
        let begin = if text.is_empty() { String::new() } else { format!("{}\n", self.piece(text, "")) };
        Some(Reply::new(200, "application/x-ndjson", format!("{begin}{}\n", json!({"error": words}))))
    }

    fn schema_complaints(&self) -> Vec<(u16, &'static str)> {
        vec![
            (500, "invalid JSON schema in format"),
            (
                500,
                "model runner has unexpectedly stopped, this may be due to resource limitations or an internal error",
            ),
        ]
    }

    fn read_request(&self, request: &Request<Bytes>) -> SentRequest {
        let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let options = &body["options"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let messages = if self.generate {
            vec![("system".to_owned(), text(&body["system"])), ("user".to_owned(), text(&body["prompt"]))]
        } else {
            let messages = body["messages"].as_array().into_iter().flatten();
            messages.map(|message| (text(&message["role"]), text(&message["content"]))).collect()
        };
        SentRequest {
            schema: body["format"].is_object().then(|| body["format"].clone()),
            tool: None,
            json_object: body["format"] == "json",
            temperature: options["temperature"].as_f64(),
            top_p: options["top_p"].as_f64(),
            seed: options["seed"].as_u64(),
            frequency_penalty: options["frequency_penalty"].as_f64(),
            max_tokens: options["num_predict"].as_u64(),
            messages,
        }
    }
}
