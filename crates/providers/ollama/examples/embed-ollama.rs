//! Extracts from a text with a simulated server, and prints the request and the completion.
//!
//! `cargo run -p formwork-ollama --example embed-ollama`

use std::sync::Arc;

use async_trait::async_trait;
use formwork_core::{Call, Enforcement, Fault, Lowered, Message, Provider, Sampling, Time};
use formwork_ollama::Ollama;
use formwork_wire::http::{Request, Response};
use formwork_wire::{Body, Bytes, Http, Transport};
use serde_json::json;

/// A simulated server. A real transport is an HTTP client with the server's address and the key.
#[derive(Debug)]
struct Canned;

#[async_trait]
impl Transport for Canned {
    async fn send(&self, request: Request<Bytes>, _: Option<Time>) -> Result<Response<Body>, Fault> {
        println!("{} {}\n{}\n", request.method(), request.uri(), String::from_utf8_lossy(request.body()));
        let lines = concat!(
            "{\"model\":\"qwen3:8b\",\"message\":{\"role\":\"assistant\",\"content\":\"{\\\"age\\\": \"},\"done\":false}\n",
            "{\"model\":\"qwen3:8b\",\"message\":{\"role\":\"assistant\",\"content\":\"34}\"},\"done\":false}\n",
            "{\"model\":\"qwen3:8b\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,",
            "\"done_reason\":\"stop\",\"prompt_eval_count\":31,\"eval_count\":7}\n",
        );
        Ok(Response::new(lines.as_bytes().to_vec().into()))
    }

    fn now(&self) -> Time {
        Time(0)
    }
}

fn main() -> Result<(), Fault> {
    let schema = json!({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]});
    let call = Call::new(
        vec![Message::user("Maria, 34, moved to Lisbon.")],
        Lowered::new(Enforcement::Schema, schema),
    )
    .with_schema_name("person")
    .with_sampling(Sampling::default().with_temperature(0.3))
    .with_max_tokens(400);
    let provider = Http::new(Ollama::new("qwen3:8b").with_keep_alive("30m"), Arc::new(Canned));
    let completion =
        futures_util::FutureExt::now_or_never(async { provider.call(&call).await?.collect().await });
    println!("{:?}", completion.transpose()?);
    Ok(())
}
