//! The requests that batch APIs have in common.

use std::pin::Pin;
use std::time::Duration;

use formwork_core::{Fault, FaultKind};
use formwork_wire::http::{HeaderMap, Method, Request};
use formwork_wire::{Body, Bytes, SharedTransport, fault_of};
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use serde_json::Value;

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

/// Sends requests of a batch API to one server.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) transport: SharedTransport,
    /// The headers of each request, beside those of the transport.
    pub(super) headers: HeaderMap,
}

impl Client {
    /// Returns the document that the server responds with.
    pub(super) async fn get(&self, path: &str) -> Result<Value, Fault> {
        self.document(self.request(Method::GET, path, Bytes::new())?, SHORT).await
    }

    /// Posts a JSON document; returns the document that the server responds with.
    pub(super) async fn post(&self, path: &str, body: impl Into<Bytes>) -> Result<Value, Fault> {
        let mut request = self.request(Method::POST, path, body.into())?;
        set(request.headers_mut(), "content-type", "application/json")?;
        self.document(request, LONG).await
    }

    /// Sends a request that takes long; returns the document that the server responds with.
    pub(super) async fn upload(&self, request: Request<Bytes>) -> Result<Value, Fault> {
        self.document(request, LONG).await
    }

    /// Returns the lines of a file.
    pub(super) async fn lines(
        &self,
        path: &str,
    ) -> Result<BoxStream<'static, Result<Vec<u8>, Fault>>, Fault> {
        let body = self.send(self.request(Method::GET, path, Bytes::new())?, LONG).await?;
        Ok(lines(body).boxed())
    }

    /// Returns a request with the headers of the API.
    pub(super) fn request(&self, method: Method, path: &str, body: Bytes) -> Result<Request<Bytes>, Fault> {
        let request = Request::builder().method(method).uri(path).body(body);
        let mut request =
            request.map_err(|error| bad(format!("the request for {path} cannot be written: {error}")))?;
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

/// Sets a header.
pub(crate) fn set(headers: &mut HeaderMap, name: &'static str, value: &str) -> Result<(), Fault> {
    let value = value.parse().map_err(|_| bad(format!("the header {name} cannot be written")))?;
    headers.insert(name, value);
    Ok(())
}

/// Returns the text of a member.
pub(super) fn text<'v>(document: &'v Value, member: &str) -> Option<&'v str> {
    document.get(member).and_then(Value::as_str)
}

/// Returns the text of a member that the API promises.
pub(super) fn required(document: &Value, member: &str) -> Result<String, Fault> {
    let found = text(document, member).map(str::to_owned);
    found.ok_or_else(|| unexpected(&format!("the provider's response has no `{member}`")))
}

/// Returns the fault of a response that this API does not promise.
pub(super) fn unexpected(message: &str) -> Fault {
    Fault::new(FaultKind::BadWire, message)
}

/// Returns the fault of a request that cannot be written.
pub(crate) fn bad(message: String) -> Fault {
    Fault::new(FaultKind::BadRequest, message)
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
