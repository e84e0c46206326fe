//! The peer of the comparison: the code that a careful author writes by hand for this one request with reqwest, serde_json and
//! jsonschema. It has types for request and response and compiles everything once; it has no retries, repairs, limits or traces.

use std::time::Duration;

use futures_util::StreamExt as _;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Client, Response, redirect, retry};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Failure;
use crate::oracle::{KEY, MODEL, Score, schema};

pub(crate) struct Bare {
    client: Client,
    url: String,
    stream: bool,
    /// The constant part of the request.
    system: String,
    response_format: Option<Value>,
    temperature: Option<f64>,
    validator: jsonschema::Validator,
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: [Message<'a>; 2],
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'a str,
    content: &'a str,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Deserialize)]
struct Answer {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(alias = "delta")]
    message: Completion,
}

#[derive(Deserialize)]
struct Completion {
    #[serde(default)]
    content: Option<String>,
}

impl Bare {
    /// Creates a client with the same settings as `formwork-http`.
    pub(crate) fn new(base_url: &str, request: &Value) -> Result<Self, Failure> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::try_from(format!("Bearer {KEY}"))?);
        let client = Client::builder()
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
        let url = format!("{base_url}/chat/completions");
        Ok(Self {
            client,
            url,
            stream: request["stream"] == true,
            system: request["messages"][0]["content"]
                .as_str()
                .ok_or("there is no system message")?
                .to_owned(),
            response_format: request.get("response_format").cloned(),
            temperature: request["temperature"].as_f64(),
            validator,
        })
    }

    pub(crate) async fn call(&self, input: &str) -> Result<Score, Failure> {
        let response = self.send(input).await?;
        let text = if self.stream { read(response, |_| {}).await? } else { content(response.json().await?) };
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
        let body = Body {
            model: MODEL,
            messages: [
                Message { role: "system", content: &self.system },
                Message { role: "user", content: input },
            ],
            response_format: self.response_format.as_ref(),
            temperature: self.temperature,
            stream: self.stream,
            stream_options: self.stream.then_some(StreamOptions { include_usage: true }),
        };
        Ok(self.client.post(&self.url).json(&body).send().await?.error_for_status()?)
    }
}

/// Reads a stream of events to its end.
pub(crate) async fn read(response: Response, mut piece: impl FnMut(&str)) -> Result<String, Failure> {
    let (mut text, mut buffer) = (String::new(), Vec::new());
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        buffer.extend_from_slice(&chunk?);
        let mut start = 0;
        while let Some(length) = buffer[start..].windows(2).position(|bytes| bytes == b"\n\n") {
            let event = &buffer[start..start + length];
            start += length + 2;
            let data = event.strip_prefix(b"data: ").ok_or("no event")?;
            if data == b"[DONE]" {
                return Ok(text);
            }
            let more = content(serde_json::from_slice(data)?);
            piece(&more);
            text.push_str(&more);
        }
        buffer.drain(..start);
    }
    Err("the stream was cut off".into())
}

fn content(answer: Answer) -> String {
    answer.choices.into_iter().next().and_then(|choice| choice.message.content).unwrap_or_default()
}
