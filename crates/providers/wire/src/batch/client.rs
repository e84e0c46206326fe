//! The requests that batch APIs have in common.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use formwork_core::{Fault, FaultKind};
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use http::{HeaderMap, Method, Request};
use serde_json::Value;

use crate::{Body, SharedTransport, bad_request, fault_of};

/// The time that a small request may take.
const SHORT: Duration = Duration::from_secs(60);

/// The time that the transfer of a file may take.
const LONG: Duration = Duration::from_secs(3600);

/// The maximum size of a document in bytes.
const DOCUMENT: usize = 16 << 20;

/// The maximum size of one line of results in bytes.
const LINE: usize = 64 << 20;

/// The maximum number of bytes that are read of an error.
const ERROR: usize = 64 << 10;

/// Sends the requests of a batch API to one server.
///
/// A request for a document takes at most one minute, every other request at most one hour.
#[derive(Debug, Clone)]
pub struct BatchClient {
    transport: SharedTransport,
    headers: HeaderMap,
}

impl BatchClient {
    /// Creates a client for the server that the transport sends to.
    pub fn new(transport: SharedTransport) -> Self {
        Self { transport, headers: HeaderMap::new() }
    }

    /// Adds headers to every request, beside those of the transport (default: none).
    #[must_use]
    pub fn with_headers(mut self, headers: HeaderMap) -> Self {
        self.headers.extend(headers);
        self
    }

    /// Returns the document at a path.
    ///
    /// # Errors
    /// A [`Fault`] with the path, if there is no response, an error, or no document.
    pub async fn get(&self, path: &str) -> Result<Value, Fault> {
        self.document(self.request(Method::GET, path, None, Bytes::new())?, SHORT).await
    }

    /// Posts a JSON document and returns the document of the response.
    ///
    /// # Errors
    /// The errors of [`get`](Self::get).
    pub async fn post(&self, path: &str, body: impl Into<Bytes>) -> Result<Value, Fault> {
        self.upload(path, "application/json", body).await
    }

    /// Posts a body of any media type and returns the document of the response.
    ///
    /// # Errors
    /// The errors of [`get`](Self::get).
    pub async fn upload(&self, path: &str, media_type: &str, body: impl Into<Bytes>) -> Result<Value, Fault> {
        self.document(self.request(Method::POST, path, Some(media_type), body.into())?, LONG).await
    }

    /// Returns the lines of the file at a path that are not empty, each a JSON document.
    ///
    /// # Errors
    /// A [`Fault`] if there is no response or an error. The stream ends with a fault if it is cut off, if a line is not JSON, or if it is
    /// longer than 64 MiB.
    pub async fn lines(&self, path: &str) -> Result<BoxStream<'static, Result<Value, Fault>>, Fault> {
        let body = self.send(self.request(Method::GET, path, None, Bytes::new())?, LONG).await?;
        let lines = lines(body).map(|line| {
            serde_json::from_slice(&line?).map_err(|_| unexpected("a line of the results is not JSON"))
        });
        Ok(lines.boxed())
    }

    /// Returns a page of a list: the member `data` of the document at a path, and its last element if there are more pages.
    ///
    /// # Errors
    /// The errors of [`get`](Self::get), and a [`Fault`] if there is no such member.
    pub async fn page(&self, path: &str) -> Result<(Vec<Value>, Option<Value>), Fault> {
        let mut page = self.get(path).await?;
        let Some(Value::Array(batches)) = page.get_mut("data").map(Value::take) else {
            return Err(unexpected("the list of batches has no `data`"));
        };
        let last = batches.last().filter(|_| page["has_more"] == Value::Bool(true)).cloned();
        Ok((batches, last))
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        media_type: Option<&str>,
        body: Bytes,
    ) -> Result<Request<Bytes>, Fault> {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(media_type) = media_type {
            request = request.header("content-type", media_type);
        }
        let request = request.body(body);
        let mut request = request
            .map_err(|error| bad_request(format!("the request for {path} cannot be written: {error}")))?;
        request.headers_mut().extend(self.headers.clone());
        Ok(request)
    }

    async fn document(&self, request: Request<Bytes>, limit: Duration) -> Result<Value, Fault> {
        let path = request.uri().path().to_owned();
        let body = self.send(request, limit).await?.collect(DOCUMENT).await?;
        serde_json::from_slice(&body)
            .map_err(|_| unexpected(&format!("the response for {path} is no JSON document")))
    }

    async fn send(&self, request: Request<Bytes>, limit: Duration) -> Result<Body, Fault> {
        let deadline = self.transport.now().after(limit);
        let place = format!("{} {}", request.method(), request.uri().path());
        let sent = self.transport.send(request, Some(deadline)).await;
        let (head, body) = sent?.into_parts();
        if head.status.is_success() {
            return Ok(body);
        }
        let body = body.beginning(ERROR).await;
        let mut fault = fault_of(&head, &body, false, self.transport.now());
        fault.message = self.transport.redact(&format!("{place}: {}", fault.message));
        Err(fault)
    }
}

/// Returns the text of a member.
pub fn text<'v>(document: &'v Value, member: &str) -> Option<&'v str> {
    document.get(member).and_then(Value::as_str)
}

/// Returns the text of a member that the API promises.
///
/// # Errors
/// A [`Fault`] if the document does not have it.
pub fn required(document: &Value, member: &str) -> Result<String, Fault> {
    let found = text(document, member).map(str::to_owned);
    found.ok_or_else(|| unexpected(&format!("the provider's response has no `{member}`")))
}

/// Returns the fault of a response that the API does not promise.
pub fn unexpected(message: &str) -> Fault {
    Fault::new(FaultKind::BadWire, message)
}

/// Splits a body into its lines, without empty ones.
fn lines(body: Body) -> impl futures_core::Stream<Item = Result<Vec<u8>, Fault>> + Send {
    struct Reading {
        body: Pin<Box<Body>>,
        /// The bytes that belong to no returned line.
        rest: Vec<u8>,
        /// The position from which line ends are looked for.
        seen: usize,
        is_ended: bool,
    }
    let reading = Reading { body: Box::pin(body), rest: Vec::new(), seen: 0, is_ended: false };
    stream::try_unfold(reading, |mut reading| async move {
        loop {
            let fresh = reading.rest.get(reading.seen..).unwrap_or_default();
            if let Some(end) = fresh.iter().position(|byte| *byte == b'\n') {
                let rest = reading.rest.split_off(reading.seen + end + 1);
                let line = std::mem::replace(&mut reading.rest, rest);
                reading.seen = 0;
                if line.trim_ascii().is_empty() {
                    continue;
                }
                return Ok(Some((line, reading)));
            }
            reading.seen = reading.rest.len();
            if reading.seen > LINE {
                return Err(unexpected(&format!("a line of the results is longer than {LINE} bytes")));
            }
            match reading.body.next().await {
                Some(chunk) => reading.rest.extend_from_slice(&chunk?),
                None if reading.is_ended || reading.rest.trim_ascii().is_empty() => return Ok(None),
                None => {
                    reading.is_ended = true;
                    reading.rest.push(b'\n');
                }
            }
        }
    })
}
