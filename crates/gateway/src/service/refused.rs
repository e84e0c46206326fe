//! The responses of requests that have no answer.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use formwork_serve::with_status_headers;

use crate::problem::Problem;
use crate::protocol::{OPENAI, Protocol};

/// The message of a problem, for the log.
#[derive(Debug, Clone)]
pub(super) struct Logged(pub(super) String);

/// Returns the response that a problem is in a protocol.
pub(super) fn refused(protocol: &Protocol, problem: &Problem) -> Response {
    let status = StatusCode::from_u16(problem.kind.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = (protocol.problem)(problem).to_string();
    let mut response = (status, [(header::CONTENT_TYPE, "application/json")], body).into_response();
    let headers = response.headers_mut();
    let should_retry = if problem.should_retry() { "true" } else { "false" };
    headers.insert("x-should-retry", HeaderValue::from_static(should_retry));
    if let Some(seconds) = problem.retry_after() {
        headers.insert(header::RETRY_AFTER, seconds.into());
    }
    if problem.calls > 0 {
        headers.insert("x-formwork-calls", problem.calls.into());
    }
    response.extensions_mut().insert(Logged(format!("{}: {}", problem.kind.name(), problem.message)));
    with_status_headers(response)
}

/// A response in place of what was requested: of a problem in OpenAI's protocol, or one that leads to another page.
#[derive(Debug)]
pub(crate) struct Refusal(Box<Response>);

impl From<Response> for Refusal {
    fn from(response: Response) -> Self {
        Self(Box::new(response))
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        refused(&OPENAI, &problem).into()
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        *self.0
    }
}
