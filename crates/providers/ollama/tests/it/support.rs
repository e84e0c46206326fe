//! Calls, and a scripted server.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use formwork_core::{Answer, Call, Completion, Delta, Enforcement, Fault, Lowered, Message, Provider, Time};
use formwork_ollama::Ollama;
use formwork_wire::http::response::Parts;
use formwork_wire::http::{Request, Response};
use formwork_wire::{Body, Bytes, Decoder, Deltas, Http, Transport, Wire};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

pub(crate) fn call(messages: Vec<Message>, lowered: Lowered) -> Call {
    Call::new(messages, lowered).with_schema_name("person")
}

/// Returns a call that enforces this schema.
pub(crate) fn with_schema(schema: Value) -> Call {
    let lowered = Lowered::new(Enforcement::Schema, schema);
    call(vec![Message::user("Maria, 34, moved to Lisbon.")], lowered)
}

/// Returns a call with this enforcement and no schema.
pub(crate) fn enforcing(enforcement: Enforcement) -> Call {
    call(vec![Message::user("hi")], Lowered::new(enforcement, None))
}

/// Returns a schema whose members are not in alphabetical order.
pub(crate) fn person() -> Value {
    json!({
        "type": "object",
        "properties": {
            "reasoning": {"type": "string", "minLength": 10, "maxLength": 500},
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
            "city": {"type": "string"},
        },
        "required": ["reasoning", "age", "city"],
        "additionalProperties": false,
    })
}

/// Returns the body of the request for a call.
pub(crate) fn body(wire: &Ollama, call: &Call) -> Value {
    serde_json::from_slice(wire.encode(call).unwrap().body()).unwrap()
}

pub(crate) fn head(status: u16, media_type: &str) -> Parts {
    let response = Response::builder().status(status).header("content-type", media_type).body(());
    response.unwrap().into_parts().0
}

/// Returns the deltas of a response whose body arrives in `chunks`.
pub(crate) fn decoded(mut decoder: Box<dyn Decoder>, chunks: &[&[u8]]) -> (Vec<Delta>, Option<Fault>) {
    let mut deltas = Deltas::new();
    let is_over = |deltas: &Deltas| matches!(deltas.back(), Some(Delta::End(_)));
    for chunk in chunks {
        if let Err(fault) = decoder.push(chunk, &mut deltas) {
            return (deltas.into(), Some(fault));
        }
        if is_over(&deltas) {
            return (deltas.into(), None);
        }
    }
    let end = decoder.end(&mut deltas);
    (deltas.into(), end.err())
}

/// One answer of the script: a status with a body, or no response.
pub(crate) type Reply = Result<(u16, String), Fault>;

/// Answers each request in turn, and records it. Streams arrive one byte at a time.
#[derive(Debug)]
pub(crate) struct Script {
    replies: Mutex<VecDeque<Reply>>,
    pub(crate) requests: Mutex<Vec<(String, Value)>>,
}

impl Script {
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Arc<Self> {
        Arc::new(Self { replies: Mutex::new(replies.into_iter().collect()), requests: Mutex::default() })
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        self.requests.lock().unwrap().iter().map(|(path, _)| path.clone()).collect()
    }
}

pub(crate) fn ok(body: impl Into<String>) -> Reply {
    Ok((200, body.into()))
}

/// Returns a whole answer of `/api/chat` with this text.
pub(crate) fn says(text: &str, done_reason: &str) -> Reply {
    let line = json!({"model": "m", "message": {"role": "assistant", "content": text}, "done": true,
        "done_reason": done_reason, "prompt_eval_count": 30, "eval_count": 8});
    ok(format!("{line}\n"))
}

#[async_trait]
impl Transport for Script {
    async fn send(&self, request: Request<Bytes>, _: Option<Time>) -> Result<Response<Body>, Fault> {
        let sent = serde_json::from_slice(request.body()).unwrap_or_default();
        let line = format!("{} {}", request.method(), request.uri());
        self.requests.lock().unwrap().push((line, sent));
        let reply = self.replies.lock().unwrap().pop_front().expect("a request that is not in the script");
        let (status, body) = reply?;
        let chunks: Vec<Result<Bytes, Fault>> =
            body.into_bytes().into_iter().map(|byte| Ok(Bytes::from(vec![byte]))).collect();
        let response = Response::builder().status(status).header("content-type", "application/json");
        Ok(response.body(Body::new(stream::iter(chunks))).unwrap())
    }

    fn now(&self) -> Time {
        Time(0)
    }
}

/// Makes a call that gets this reply.
pub(crate) async fn answered(wire: Ollama, call: &Call, reply: Reply) -> Result<Completion, Fault> {
    let answer: Answer = Http::new(wire, Script::new([reply])).call(call).await?;
    answer.collect().await
}

/// Returns all deltas of a response, and the fault that ended it.
pub(crate) async fn pieces(wire: Ollama, call: &Call, reply: Reply) -> Vec<Result<Delta, Fault>> {
    Http::new(wire, Script::new([reply])).call(call).await.unwrap().collect_all().await
}

trait CollectAll {
    async fn collect_all(self) -> Vec<Result<Delta, Fault>>;
}

impl CollectAll for Answer {
    async fn collect_all(self) -> Vec<Result<Delta, Fault>> {
        StreamExt::collect(self).await
    }
}
