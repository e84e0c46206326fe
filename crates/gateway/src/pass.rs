//! Requests that are passed on in the protocol of the target.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, Method, Request, Response, Uri, header, response};
use formwork::providers::Raw;
use formwork_core::Time;
use formwork_wire::{Bytes, fault_of};
use serde_json::Value;

use crate::problem::{Kind, Problem};

/// The headers of a request that the target gets to see.
static SENT: [HeaderName; 3] = [
    HeaderName::from_static("anthropic-version"),
    HeaderName::from_static("anthropic-beta"),
    HeaderName::from_static("openai-beta"),
];

/// The headers of a response that the client gets to see. A body whose length is known is not chunked, which saves a write.
static RETURNED: [HeaderName; 4] =
    [header::CONTENT_TYPE, header::CACHE_CONTROL, header::CONTENT_LANGUAGE, header::CONTENT_LENGTH];

/// The maximum number of bytes that are read of the body of an error.
const MAX_ERROR: usize = 64 << 10;

/// Returns the body of a request with the name of the target's model.
pub(crate) fn written(body: &mut Value, raw: &Raw) -> Bytes {
    if let Value::Object(members) = body {
        members.insert("model".to_owned(), raw.model.clone().into());
    }
    // Writing JSON to memory does not fail.
    serde_json::to_vec(body).unwrap_or_default().into()
}

/// Sends a request to a target and returns its response with the body unread.
///
/// # Errors
/// [`Problem`] for a target that does not answer or refuses us. What is wrong with the request itself (400, 413, 422) is the
/// target's own response.
pub(crate) async fn send(
    raw: &Raw,
    path: &'static str,
    body: Bytes,
    headers: &HeaderMap,
    deadline: Duration,
) -> Result<Response<formwork_wire::Body>, Problem> {
    let mut request = Request::new(body);
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::from_static(path);
    request.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    for name in &SENT {
        if let Some(value) = headers.get(name) {
            request.headers_mut().insert(name, value.clone());
        }
    }
    let until: Time = raw.transport.now().after(deadline);
    let sent = raw.transport.send(request, Some(until)).await;
    let response = sent.map_err(|fault| Problem::of_fault(&fault))?;
    let (head, body) = response.into_parts();
    if head.status.is_success() || matches!(head.status.as_u16(), 400 | 413 | 422) {
        return Ok(Response::from_parts(head, body));
    }
    let body = body.beginning(MAX_ERROR).await;
    let mut fault = fault_of(&head, &body, false, raw.transport.now());
    fault.message = raw.transport.redact(&fault.message);
    let problem = Problem::of_fault(&fault);
    // A model that the target lacks is a mistake of the gateway's configuration; a bad request was handled above.
    Err(if problem.kind == Kind::Invalid { Problem { kind: Kind::Upstream, ..problem } } else { problem })
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
