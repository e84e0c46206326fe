//! Extracts from a text with a simulated server, and prints the request and the completion.
//!
//! `cargo run -p formwork-anthropic --example embed-anthropic`

use std::sync::Arc;

use async_trait::async_trait;
use formwork_anthropic::Anthropic;
use formwork_core::{Call, Enforcement, Fault, Lowered, Message, Provider, Time};
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
        let document = json!({
            "type": "message",
            "model": "claude-sonnet-4-6",
            "content": [{"type": "text", "text": "{\"age\": 34}"}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 31, "output_tokens": 7},
        });
        Ok(Response::new(document.to_string().into_bytes().into()))
    }

    fn now(&self) -> Time {
        Time(0)
    }
}

fn main() -> Result<(), Fault> {
    let schema = json!({
        "type": "object",
        "properties": {"age": {"type": "integer"}},
        "required": ["age"],
        "additionalProperties": false,
    });
    let call = Call::new(
        vec![Message::user("Maria, 34, moved to Lisbon.")],
        Lowered::new(Enforcement::Schema, schema),
    )
    .with_schema_name("person")
    .with_max_tokens(400);
    let provider = Http::new(Anthropic::new("claude-sonnet-4-6").with_stream(false), Arc::new(Canned));
    let completion =
        futures_util::FutureExt::now_or_never(async { provider.call(&call).await?.collect().await });
    println!("{:?}", completion.transpose()?);
    Ok(())
}
