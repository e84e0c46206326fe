//! The peer of the comparison: the code that a careful author writes by hand for this one request with reqwest, serde_json and
//! jsonschema. It has types for request and response and compiles everything once; it has no retries, repairs, limits or traces.

use std::time::Duration;

use futures_util::StreamExt as _;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, redirect, retry};
use serde_json::Value;

use crate::Failure;
use crate::oracle::{KEY, Score, schema};
use crate::wires::{self, Wire};

pub(crate) struct Bare {
    wire: &'static Wire,
    client: reqwest::Client,
    url: String,
    stream: bool,
    protocol: Box<dyn wires::Bare>,
    validator: jsonschema::Validator,
}

impl Bare {
    /// Creates a client with the same settings as `formwork-http`, and with the constant parts of a request of ours.
    pub(crate) fn new(
        wire: &'static Wire,
        address: &str,
        stream: bool,
        request: &Value,
    ) -> Result<Self, Failure> {
        let key = format!("{}{KEY}", wire.auth.prefix);
        let mut headers = HeaderMap::new();
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
        let protocol =
            (wire.bare)(request).ok_or_else(|| format!("a part of the request is missing: {request}"))?;
        let url = format!("{address}/{}{}{}", wire.name, wire.base, wire.paths[usize::from(stream)]);
        Ok(Self { wire, client, url, stream, protocol, validator })
    }

    pub(crate) async fn call(&self, input: &str) -> Result<Score, Failure> {
        let response = self.send(input).await?;
        let text = if self.stream {
            self.read(response, |_| {}).await?
        } else {
            self.protocol.text(&response.bytes().await?)?
        };
        self.judge(&text)
    }

    pub(crate) fn judge(&self, text: &str) -> Result<Score, Failure> {
        let value: Value = serde_json::from_str(text)?;
        if !self.validator.is_valid(&value) {
            return Err("the answer does not satisfy the schema".into());
        }
        Ok(serde_json::from_value(value)?)
    }

    pub(crate) async fn send(&self, input: &str) -> Result<Response, Failure> {
        let request = self.protocol.with_body(self.client.post(&self.url), input);
        Ok(request.send().await?.error_for_status()?)
    }

    /// Reads a stream of events to its end.
    pub(crate) async fn read(
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
                let read = self.protocol.piece(framing.data(event).ok_or("no event")?)?;
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
}
