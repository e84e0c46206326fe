//! A small protocol (lines of text, the last of which is `end`), and a transport with canned responses.

use std::collections::VecDeque;
use std::sync::Mutex;

use async_trait::async_trait;
use bytes::Bytes;
use formwork_core::{
    Call, Capabilities, Delta, End, Enforcement, Fault, FaultKind, Finish, Lowered, Message, Time, Usage,
};
use formwork_wire::http::response::Parts;
use formwork_wire::http::{Request, Response};
use formwork_wire::{Body, Decoder, Deltas, Framed, Messages, Ndjson, Transport, Wire};
use serde_json::{Value, json};

#[derive(Debug, Default)]
pub(crate) struct Toy(Capabilities);

impl Wire for Toy {
    fn name(&self) -> &str {
        "toy"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.0
    }

    fn encode(&self, call: &Call) -> Result<Request<Bytes>, Fault> {
        let body = json!({"ask": call.messages[0].text(), "format": call.schema()}).to_string();
        Request::post("/ask")
            .body(body.into())
            .map_err(|error| Fault::new(FaultKind::BadRequest, error.to_string()))
    }

    fn decoder(&self, _: &Call, _: &Parts) -> Box<dyn Decoder> {
        Box::new(Framed::<Ndjson, _>::new(Lines))
    }
}

struct Lines;

impl Messages for Lines {
    fn message(&mut self, text: &str, out: &mut Deltas) -> Result<(), Fault> {
        if text.starts_with('[') && serde_json::from_str::<Vec<u8>>(text).is_err() {
            return Err(Fault::new(FaultKind::BadWire, "these are no numbers"));
        }
        if text == "broken" {
            return Err(Fault::new(FaultKind::Overloaded, "the secret sesame is not taken"));
        }
        out.push_back(match text {
            "end" => Delta::End(End::new(Finish::Stop, Usage::default())),
            text => Delta::Text(text.to_owned()),
        });
        Ok(())
    }
}

/// A response of a [`Line`]: status, headers, and the chunks of the body.
pub(crate) struct Reply(pub(crate) u16, pub(crate) Vec<(&'static str, String)>, pub(crate) Vec<Vec<u8>>);

impl Reply {
    pub(crate) fn ok(chunks: &[&str]) -> Self {
        Self(200, Vec::new(), chunks.iter().map(|chunk| chunk.as_bytes().to_vec()).collect())
    }
}

/// Responds with one reply after the other.
#[derive(Default)]
pub(crate) struct Line(Mutex<VecDeque<Reply>>);

impl Line {
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self(Mutex::new(replies.into_iter().collect()))
    }
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Line")
    }
}

#[async_trait]
impl Transport for Line {
    async fn send(&self, _: Request<Bytes>, _: Option<Time>) -> Result<Response<Body>, Fault> {
        let reply = self.0.lock().unwrap().pop_front();
        let Some(Reply(status, headers, chunks)) = reply else {
            return Err(Fault::new(FaultKind::Unreachable, "nobody is there, sesame"));
        };
        let chunks = futures_util::stream::iter(chunks.into_iter().map(|chunk| Ok(Bytes::from(chunk))));
        let response = headers.iter().fold(Response::builder().status(status), |response, (name, value)| {
            response.header(*name, value)
        });
        Ok(response.body(Body::new(chunks)).unwrap())
    }

    fn redact(&self, text: &str) -> String {
        text.replace("sesame", "[redacted]")
    }

    fn now(&self) -> Time {
        Time(1_000_000_000_000)
    }
}

pub(crate) fn call(text: &str, schema: Option<Value>) -> Call {
    let enforcement = if schema.is_some() { Enforcement::Schema } else { Enforcement::None };
    Call::new(vec![Message::user(text)], Lowered::new(enforcement, schema))
}
