//! Calls, and a scripted server.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use async_trait::async_trait;
use formwork_core::{Call, Completion, Delta, Enforcement, Fault, Lowered, Message, Provider, Time};
use formwork_openai::OpenAi;
use formwork_wire::http::response::Parts;
use formwork_wire::http::{Request, Response};
use formwork_wire::{Body, Bytes, Deltas, Http, Transport, Wire};
use futures_core::Stream;
use serde_json::{Value, json};

pub(crate) fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"],
        "additionalProperties": false,
    })
}

pub(crate) fn call(enforcement: Enforcement) -> Call {
    let schema = matches!(enforcement, Enforcement::Schema | Enforcement::Tool).then(schema);
    Call::new(
        vec![Message::system("Answer in JSON."), Message::user("Maria, 34, moved to Lisbon.")],
        Lowered::new(enforcement, schema),
    )
    .with_schema_name("Person")
}

/// The body of a request.
pub(crate) fn sent(wire: &OpenAi, call: &Call) -> Value {
    serde_json::from_slice(wire.encode(call).unwrap().body()).unwrap()
}

pub(crate) fn head(status: u16, media_type: &str) -> Parts {
    let builder = Response::builder().status(status).header("content-type", media_type);
    builder.body(()).unwrap().into_parts().0
}

/// Decodes a body that arrives in `chunks`.
pub(crate) fn decode_chunks<'a>(
    call: &Call,
    media_type: &str,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Delta>, Result<(), Fault>) {
    decode_by(&OpenAi::new("gpt-test"), call, media_type, chunks)
}

/// Decodes a body that arrives in `chunks`, with this codec.
pub(crate) fn decode_by<'a>(
    wire: &OpenAi,
    call: &Call,
    media_type: &str,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Delta>, Result<(), Fault>) {
    let mut decoder = wire.decoder(call, &head(200, media_type));
    let mut out = Deltas::new();
    for chunk in chunks {
        if let Err(fault) = decoder.push(chunk, &mut out) {
            return (out.into(), Err(fault));
        }
        if matches!(out.back(), Some(Delta::End(_))) {
            return (out.into(), Ok(()));
        }
    }
    let end = decoder.end(&mut out);
    (out.into(), end)
}

/// The completion in a body.
pub(crate) fn decode(call: &Call, media_type: &str, body: &str) -> Result<Completion, Fault> {
    let (deltas, end) = decode_chunks(call, media_type, [body.as_bytes()]);
    end?;
    let mut completion = Completion::new("");
    let mut has_ended = false;
    for delta in deltas {
        assert!(!has_ended, "something comes after the end: {delta:?}");
        has_ended = completion.push(delta);
    }
    assert!(has_ended, "no end");
    Ok(completion)
}

pub(crate) const STREAM: &str = "text/event-stream";
pub(crate) const JSON: &str = "application/json; charset=utf-8";

/// The stream of these chunks, with `[DONE]` at its end.
pub(crate) fn stream(chunks: &[Value]) -> String {
    let events: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    events + "data: [DONE]\n\n"
}

pub(crate) fn delta(delta: Value) -> Value {
    json!({"id": "c", "model": "gpt-test-2026", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

pub(crate) fn ends(reason: &str) -> Value {
    json!({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

/// A server that sends the listed responses in order and records the requests.
#[derive(Debug, Default)]
pub(crate) struct Server {
    answers: Mutex<VecDeque<(u16, &'static str, String)>>,
    pub(crate) requests: Mutex<Vec<Request<Bytes>>>,
}

impl Server {
    pub(crate) fn new(status: u16, media_type: &'static str, body: impl Into<String>) -> Arc<Self> {
        let answers = Mutex::new(VecDeque::from([(status, media_type, body.into())]));
        Arc::new(Self { answers, requests: Mutex::default() })
    }
}

#[async_trait]
impl Transport for Server {
    async fn send(&self, request: Request<Bytes>, _: Option<Time>) -> Result<Response<Body>, Fault> {
        self.requests.lock().unwrap().push(request);
        let (status, media_type, body) = self.answers.lock().unwrap().pop_front().unwrap();
        let bytes = body.into_bytes();
        // The chunks end inside lines and characters.
        let chunks = bytes.chunks(7).map(|chunk| Ok(Bytes::copy_from_slice(chunk))).collect();
        Ok(Response::builder()
            .status(status)
            .header("content-type", media_type)
            .header("x-request-id", "req-1")
            .body(Body::new(Chunks(chunks)))
            .unwrap())
    }

    fn now(&self) -> Time {
        Time(0)
    }
}

struct Chunks(VecDeque<Result<Bytes, Fault>>);

impl Stream for Chunks {
    type Item = Result<Bytes, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.pop_front())
    }
}

/// The result of a call that gets this response.
pub(crate) async fn answered(
    call: &Call,
    status: u16,
    media_type: &'static str,
    body: impl Into<String>,
) -> Result<Completion, Fault> {
    let provider = Http::new(OpenAi::new("gpt-test"), Server::new(status, media_type, body));
    provider.call(call).await?.collect().await
}

/// The messages as a call has them.
pub(crate) fn shared(messages: impl IntoIterator<Item = Message>) -> Vec<Arc<Message>> {
    messages.into_iter().map(Arc::new).collect()
}
