//! Extracts from a text with a simulated server, and prints the request and the completion.
//!
//! `cargo run -p formwork-gemini --example embed-gemini`

use std::sync::Arc;

use async_trait::async_trait;
use formwork_core::{Call, Enforcement, Fault, Lower as _, LowerRequest, Lowered, Message, Provider, Time};
use formwork_dialect::Native;
use formwork_gemini::Gemini;
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
            "candidates": [{"content": {"parts": [{"text": "{\"age\": 34}"}], "role": "model"}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 6, "thoughtsTokenCount": 20},
            "modelVersion": "gemini-3.5-flash",
        });
        Ok(Response::new(document.to_string().into_bytes().into()))
    }

    fn now(&self) -> Time {
        Time(0)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let schema =
        json!({"type": "object", "properties": {"age": {"enum": [34, 35, null]}}, "required": ["age"]});
    for dialect in [Native::GEMINI, Native::GEMINI_OPENAPI] {
        let lowered: Lowered = dialect.lower(&LowerRequest::new(&schema))?;
        assert_eq!(lowered.enforcement, Enforcement::Schema);
        let call = Call::new(vec![Message::user("Maria, 34, moved to Lisbon.")], lowered)
            .with_schema_name("person")
            .with_max_tokens(400);
        let provider = Http::new(Gemini::new("gemini-3.5-flash").with_stream(false), Arc::new(Canned));
        let completion =
            futures_util::FutureExt::now_or_never(async { provider.call(&call).await?.collect().await });
        println!("{:?}\n", completion.transpose()?);
    }
    Ok(())
}
