//! Extracts from a text with a simulated server, and prints the request and the completion.
//!
//! `cargo run -p formwork-openai --example embed-openai`

use std::sync::Arc;

use async_trait::async_trait;
use formwork_core::{Call, Enforcement, Fault, Lowered, Message, Provider, Time};
use formwork_openai::OpenAi;
use formwork_wire::http::{Request, Response};
use formwork_wire::{Body, Bytes, Http, Transport};
use serde_json::json;

/// A simulated server. A real transport is an HTTP client with the server's address and the key.
#[derive(Debug)]
struct Stand;

#[async_trait]
impl Transport for Stand {
    async fn send(&self, request: Request<Bytes>, _: Option<Time>) -> Result<Response<Body>, Fault> {
        println!("{} {}\n{}\n", request.method(), request.uri(), String::from_utf8_lossy(request.body()));
        let stream = concat!(
            "data: {\"model\":\"gpt-5.6\",\"choices\":[{\"delta\":{\"content\":\"{\\\"age\\\": \"}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"content\":\"34}\"},\"finish_reason\":\"stop\"}]}\n\n",
            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":41,\"completion_tokens\":5}}\n\n",
            "data: [DONE]\n\n",
        );
        let mut response = Response::new(Body::from(stream.as_bytes().to_vec()));
        response.headers_mut().insert(
            formwork_wire::http::header::CONTENT_TYPE,
            formwork_wire::http::HeaderValue::from_static("text/event-stream"),
        );
        Ok(response)
    }

    fn now(&self) -> Time {
        Time(0)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Fault> {
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
    .with_schema_name("Person")
    .with_max_tokens(200);
    let provider = Http::new(OpenAi::new("gpt-5.6"), Arc::new(Stand));
    let answer = provider.call(&call).await?.collect().await?;
    println!("{} ({:?}, {} tokens)", answer.text, answer.finish, answer.usage.output_tokens);
    Ok(())
}
