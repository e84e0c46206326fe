use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::wallet::WalletError;
use formwork_serve::RequestId;

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
    #[serde(skip)]
    header: Option<(header::HeaderName, &'static str)>,
}

/// The kind of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    InvalidJson,
    Unauthorized,
    NotFound,
    MethodNotAllowed,
    ReadTimeout,
    BodyTooLong,
    UnsupportedMediaType,
    InvalidWallet,
    BrokenBody,
    NoScore,
    Busy,
    ShuttingDown,
    Timeout,
}

impl Kind {
    const fn parts(self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Self::InvalidJson => (StatusCode::BAD_REQUEST, "invalid-json", "The body is no JSON"),
            Self::BrokenBody => (StatusCode::BAD_REQUEST, "broken-body", "The body broke off"),
            Self::Unauthorized => (StatusCode::UNAUTHORIZED, "unauthorized", "The key is missing or wrong"),
            Self::NotFound => (StatusCode::NOT_FOUND, "not-found", "There is no such resource"),
            Self::MethodNotAllowed => {
                (StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "The resource has no such method")
            }
            Self::ReadTimeout => {
                (StatusCode::REQUEST_TIMEOUT, "read-timeout", "The body did not come in time")
            }
            Self::BodyTooLong => (StatusCode::PAYLOAD_TOO_LARGE, "body-too-long", "The body is too long"),
            Self::UnsupportedMediaType => (
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "unsupported-media-type",
                "The body is neither JSON nor CSV",
            ),
            Self::InvalidWallet => {
                (StatusCode::UNPROCESSABLE_ENTITY, "invalid-wallet", "The wallet cannot be scored")
            }
            Self::NoScore => (StatusCode::BAD_GATEWAY, "no-score", "No model gave a score"),
            Self::Busy => (StatusCode::SERVICE_UNAVAILABLE, "busy", "Too many requests wait already"),
            Self::ShuttingDown => (StatusCode::SERVICE_UNAVAILABLE, "shutting-down", "The service ends"),
            Self::Timeout => (StatusCode::GATEWAY_TIMEOUT, "timeout", "The score took too long"),
        }
    }
}

impl Problem {
    pub(super) fn new(kind: Kind, id: &RequestId, detail: impl Into<String>) -> Self {
        let (status, name, title) = kind.parts();
        let header = match kind {
            Kind::Unauthorized => Some((header::WWW_AUTHENTICATE, "Bearer")),
            Kind::Busy | Kind::ShuttingDown => Some((header::RETRY_AFTER, "1")),
            // The rest of the body is not read, so the connection cannot be reused.
            Kind::ReadTimeout | Kind::BodyTooLong => Some((header::CONNECTION, "close")),
            _ => None,
        };
        Self(Box::new(Document {
            r#type: format!("urn:formwork:problem:{name}"),
            title,
            status: status.as_u16(),
            detail: detail.into(),
            request_id: id.as_str().to_owned(),
            path: None,
            line: None,
            header,
        }))
    }

    /// Returns the problem with a wallet: invalid JSON or an invalid wallet.
    pub(super) fn wallet(id: &RequestId, error: &WalletError, is_json: bool) -> Self {
        let kind = if is_json && error.path().is_none() { Kind::InvalidJson } else { Kind::InvalidWallet };
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
        if let Some((name, value)) = self.0.header {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}
