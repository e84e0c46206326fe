//! Requests that are passed on in the protocol of the target.

use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header, response,
};
use formwork::providers::{Protocol, Raw};
use formwork_core::{Fault, FaultKind, Time, Usage};
use formwork_wire::{Bytes, fault_of};
use serde_json::{Map, Value};

use crate::failover::{Attempt, Failed};
use crate::names::Target;
use crate::problem::{Kind, Problem};
use crate::vendor::sent;

/// The headers of a response that the client gets to see. A body whose length is known is not chunked, which saves a write.
static RETURNED: [HeaderName; 4] =
    [header::CONTENT_TYPE, header::CACHE_CONTROL, header::CONTENT_LANGUAGE, header::CONTENT_LENGTH];

/// The maximum number of bytes that are read of the body of an error.
const MAX_ERROR: usize = 64 << 10;

/// The same of the refusal of a request, which the client gets.
const MAX_REFUSAL: usize = 4 << 20;

/// The member by which usage is requested in streams, as servers without it name it in their errors.
const STREAM_OPTIONS: &[u8] = b"stream_options";

/// A request that targets of its own protocol get as it is; `write` returns its body for a target, and whether usage is asked for.
#[derive(Debug)]
pub(crate) struct Pass<'p, W> {
    pub(crate) protocols: &'p [Protocol],
    pub(crate) path: &'static str,
    pub(crate) headers: &'p HeaderMap,
    /// The end of the time for all targets together.
    pub(crate) until: Instant,
    /// The same, if the client set it.
    pub(crate) wish: Option<tokio::time::Instant>,
    /// The usage of a call that is not answered in time.
    pub(crate) unanswered: Usage,
    /// Whether usage is asked for that the client does not expect. Servers that do not know that get the request as the client wrote it.
    pub(crate) adds_usage: bool,
    pub(crate) write: W,
}

/// The response of a target, its body unread.
pub(crate) struct Passed {
    pub(crate) response: Response<formwork_wire::Body>,
    /// Whether usage was asked for that the client does not expect.
    pub(crate) adds_usage: bool,
}

impl<W: FnMut(&Raw, bool) -> Result<Bytes, Problem> + Send> Attempt for Pass<'_, W> {
    type Answer = Passed;
    const IS_WHOLE: bool = false;

    fn takes(&self, target: &Target) -> bool {
        target.raw.as_ref().is_some_and(|raw| self.protocols.contains(&raw.protocol))
    }

    fn until(&self) -> Option<tokio::time::Instant> {
        self.wish
    }

    fn begun(&self) -> Usage {
        self.unanswered
    }

    async fn call(&mut self, target: &Target) -> Result<Passed, Failed> {
        loop {
            let broken = |problem| Failed { fault: None, problem, usage: Usage::default(), is_final: true };
            let none = || broken(Problem::new(Kind::Internal, "the target has no server"));
            let raw = target.raw.as_ref().ok_or_else(none)?;
            let body = (self.write)(raw, self.adds_usage).map_err(broken)?;
            let left = self.until.saturating_duration_since(Instant::now());
            let response = send(raw, self.path, body, self.headers, left).await.map_err(|fault| {
                let problem = problem(&fault);
                // Without a connection nothing was sent.
                let is_late = problem.kind == Kind::Deadline && fault.connection.is_none();
                let usage = if is_late { self.unanswered } else { Usage::default() };
                Failed { fault: Some(fault), problem, usage, is_final: false }
            })?;
            if !self.adds_usage || !response.status().is_client_error() {
                return Ok(Passed { response, adds_usage: self.adds_usage });
            }
            self.adds_usage = false;
            let (head, body) = response.into_parts();
            let bytes = body.beginning(MAX_REFUSAL).await;
            if !bytes.windows(STREAM_OPTIONS.len()).any(|part| part == STREAM_OPTIONS) {
                let response = Response::from_parts(head, formwork_wire::Body::from(bytes));
                return Ok(Passed { response, adds_usage: false });
            }
        }
    }
}

/// Returns the body of a request with the name of the target's model.
pub(crate) fn written(body: &mut Value, raw: &Raw, asks_usage: bool) -> Bytes {
    if let Value::Object(members) = body {
        members.insert("model".to_owned(), raw.model.clone().into());
        if asks_usage {
            let options = members.entry("stream_options").or_insert_with(|| Value::Object(Map::new()));
            if options.is_object() {
                options["include_usage"] = true.into();
            }
        }
    }
    // Writing JSON to memory does not fail.
    serde_json::to_vec(body).unwrap_or_default().into()
}

/// Sends a request to a target and returns its response with the body unread.
///
/// # Errors
/// [`Fault`] for a target that does not answer or refuses us; see [`problem`]. What is wrong with the request itself (400, 413, 422) is the
/// target's own response.
async fn send(
    raw: &Raw,
    path: &'static str,
    body: Bytes,
    headers: &HeaderMap,
    deadline: Duration,
) -> Result<Response<formwork_wire::Body>, Fault> {
    let mut request = Request::new(body);
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::from_static(path);
    request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in sent(headers) {
        request.headers_mut().insert(name, value);
    }
    let until: Time = raw.transport.now().after(deadline);
    let response = raw.transport.send(request, Some(until)).await?;
    let (mut head, body) = response.into_parts();
    if head.status.is_success() {
        let is_empty = head.headers.get(header::CONTENT_LENGTH).is_some_and(|length| length == "0");
        if is_empty || head.status == StatusCode::NO_CONTENT {
            let fault = Fault::new(FaultKind::BadWire, "the response of the target is empty");
            return Err(fault.with_status(head.status.as_u16()));
        }
        return Ok(Response::from_parts(head, body));
    }
    if matches!(head.status.as_u16(), 400 | 413 | 422) {
        // Servers quote requests in their errors.
        let body = redacted(raw, body.beginning(MAX_REFUSAL).await);
        head.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
        return Ok(Response::from_parts(head, body.into()));
    }
    let body = body.beginning(MAX_ERROR).await;
    let mut fault = fault_of(&head, &body, false, raw.transport.now());
    fault.message = raw.transport.redact(&fault.message);
    Err(fault)
}

/// Returns a text of a target without the secrets that were sent to it.
pub(crate) fn redacted(raw: &Raw, bytes: Vec<u8>) -> Vec<u8> {
    let text = String::from_utf8_lossy(&bytes);
    let redacted = raw.transport.redact(&text);
    if redacted == *text { bytes } else { redacted.into_bytes() }
}

/// Returns the problem of a target that does not answer or refuses us.
fn problem(fault: &Fault) -> Problem {
    let problem = Problem::of_fault(fault);
    // A model that the target lacks is a mistake of the gateway's configuration; a bad request is the target's own response.
    if problem.kind == Kind::Invalid { Problem { kind: Kind::Upstream, ..problem } } else { problem }
}

/// Returns the response for the client: the status and the headers of the target's, with a body.
pub(crate) fn returned(head: &response::Parts, body: Body) -> Response<Body> {
    let mut out = Response::new(body);
    *out.status_mut() = head.status;
    for name in &RETURNED {
        if let Some(value) = head.headers.get(name) {
            out.headers_mut().insert(name, value.clone());
        }
    }
    out
}
