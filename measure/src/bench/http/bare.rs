//! The peer of the comparison: the code that a careful author writes by hand for this one request with reqwest, serde_json and
//! jsonschema. It reads nothing of a response but the completion and compiles everything once; it has no retries, repairs, limits or
//! traces.

use std::cell::RefCell;
use std::time::Duration;

use futures_util::StreamExt as _;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, redirect, retry};
use serde_json::Value;

use super::texts::{Piece, read};
use super::wires::Wire;
use crate::Failure;
use crate::bench::oracle::{KEY, Score, schema};

pub(super) struct Bare {
    wire: &'static Wire,
    client: reqwest::Client,
    url: String,
    stream: bool,
    /// The body, whose input is replaced in each call.
    body: RefCell<Value>,
    validator: jsonschema::Validator,
}

impl Bare {
    /// Creates a client with the same settings as `formwork-http`, and with the body of a request of ours.
    pub(super) fn new(wire: &'static Wire, url: &str, stream: bool, body: Value) -> Result<Self, Failure> {
        // reqwest panics without a default crypto provider. Formwork installs its own; an error means that there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let key = format!("{}{KEY}", wire.auth.prefix);
        let mut headers =
            HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        for (name, value) in wire.headers.iter().copied().chain([(wire.auth.header, key.as_str())]) {
            headers.insert(HeaderName::try_from(name)?, HeaderValue::try_from(value)?);
        }
        let client = reqwest::Client::builder()
            .user_agent("formwork/0.1.0")
            .default_headers(headers)
            .connect_timeout(Duration::from_secs(10))
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .referer(false)
            .no_proxy()
            .build()?;
        let options = jsonschema::options().should_validate_formats(true);
        let validator = options.build(&schema()?).map_err(|error| error.to_string())?;
        if !body.pointer(wire.input).is_some_and(Value::is_string) {
            return Err(format!("the request has no input at {}: {body}", wire.input).into());
        }
        let url = format!("{url}/{}{}{}", wire.name, wire.base, wire.paths[usize::from(stream)]);
        Ok(Self { wire, client, url, stream, body: RefCell::new(body), validator })
    }

    pub(super) async fn call(&self, input: &str) -> Result<Score, Failure> {
        let response = self.send(input).await?;
        let text = if self.stream {
            self.read(response, |_| {}).await?
        } else {
            let bytes = response.bytes().await?;
            read(&bytes, self.wire.document, None)?.text.unwrap_or_default()
        };
        let value: Value = serde_json::from_str(&text)?;
        if !self.validator.is_valid(&value) {
            return Err("the answer does not satisfy the schema".into());
        }
        Ok(serde_json::from_value(value)?)
    }

    pub(super) async fn send(&self, input: &str) -> Result<Response, Failure> {
        let body = {
            let mut body = self.body.borrow_mut();
            if let Some(place) = body.pointer_mut(self.wire.input) {
                *place = input.into();
            }
            serde_json::to_vec(&*body)?
        };
        Ok(self.client.post(&self.url).body(body).send().await?.error_for_status()?)
    }

    /// Reads a stream of events to its end.
    pub(super) async fn read(
        &self,
        response: Response,
        mut piece: impl FnMut(&str),
    ) -> Result<String, Failure> {
        let framing = self.wire.framing;
        let (mut text, mut buffer) = (String::new(), Vec::new());
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            buffer.extend_from_slice(&chunk?);
            let mut start = 0;
            while let Some((length, whole)) = framing.next(&buffer[start..]) {
                let event = &buffer[start..start + length];
                start += whole;
                let read = self.piece(framing.data(event).ok_or("no event")?)?;
                if let Some(more) = read.text {
                    piece(&more);
                    text.push_str(&more);
                }
                if read.is_last {
                    return Ok(text);
                }
            }
            buffer.drain(..start);
        }
        Err("the stream was cut off".into())
    }

    fn piece(&self, event: &[u8]) -> serde_json::Result<Piece> {
        match self.wire.last {
            ([], Some(mark)) if event == mark.as_bytes() => Ok(Piece { text: None, is_last: true }),
            last => read(event, self.wire.event, Some(last)),
        }
    }
}
