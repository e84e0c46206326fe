use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::wallet::WalletError;
use formwork_serve::{RequestId, with_status_headers};

/// The problem with a request (RFC 9457).
#[derive(Debug)]
pub(super) struct Problem(Box<Document>);

/// The members of RFC 9457, and those of this service.
#[derive(Debug, Serialize)]
struct Document {
    /// The kind of problem for programs: `urn:formwork:problem:` and a name.
    r#type: String,
    /// The kind of problem for people.
    title: &'static str,
    status: u16,
    /// The reason of this problem, and the fix.
    detail: String,
    /// The id of the request in logs and ledgers.
    request_id: String,
    /// The path of the mistake in the wallet.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
}

/// The kind of a problem: the status of the response, the name and the title.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind(u16, &'static str, &'static str);

impl Kind {
    pub(super) const INVALID_JSON: Self = Self(400, "invalid-json", "The body is no JSON");
    pub(super) const BROKEN_BODY: Self = Self(400, "broken-body", "The body broke off");
    pub(super) const UNAUTHORIZED: Self = Self(401, "unauthorized", "The key is missing or wrong");
    pub(super) const NOT_FOUND: Self = Self(404, "not-found", "There is no such resource");
    pub(super) const METHOD_NOT_ALLOWED: Self =
        Self(405, "method-not-allowed", "The resource has no such method");
    pub(super) const READ_TIMEOUT: Self = Self(408, "read-timeout", "The body did not come in time");
    pub(super) const BODY_TOO_LONG: Self = Self(413, "body-too-long", "The body is too long");
    pub(super) const UNSUPPORTED_MEDIA_TYPE: Self =
        Self(415, "unsupported-media-type", "The body is neither JSON nor CSV");
    pub(super) const INVALID_WALLET: Self = Self(422, "invalid-wallet", "The wallet cannot be scored");
    pub(super) const NO_SCORE: Self = Self(502, "no-score", "No model gave a score");
    pub(super) const BUSY: Self = Self(503, "busy", "Too many requests wait already");
    pub(super) const SHUTTING_DOWN: Self = Self(503, "shutting-down", "The service ends");
    pub(super) const TIMEOUT: Self = Self(504, "timeout", "The score took too long");
}

impl Problem {
    pub(super) fn new(kind: Kind, id: &RequestId, detail: impl Into<String>) -> Self {
        let Kind(status, name, title) = kind;
        Self(Box::new(Document {
            r#type: format!("urn:formwork:problem:{name}"),
            title,
            status,
            detail: detail.into(),
            request_id: id.as_str().to_owned(),
            path: None,
            line: None,
        }))
    }

    /// Returns the problem with a wallet: invalid JSON or an invalid wallet.
    pub(super) fn wallet(id: &RequestId, error: &WalletError, is_json: bool) -> Self {
        let kind = if is_json && error.path().is_none() { Kind::INVALID_JSON } else { Kind::INVALID_WALLET };
        let mut problem = Self::new(kind, id, error.message());
        problem.0.path = error.path().map(str::to_owned);
        problem.0.line = error.line();
        problem
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        // Strings and numbers can always be serialized.
        let body = serde_json::to_vec(&self.0).unwrap_or_default();
        let mut response =
            (status, [(header::CONTENT_TYPE, "application/problem+json")], body).into_response();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        with_status_headers(response)
    }
}
