use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;

/// Returns the API key of a request: the token of `Authorization: Bearer`, or else the value of `x-api-key`.
///
/// ```
/// use axum::http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
/// use formwork_serve::presented_key;
///
/// let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static("bearer correct-horse"))]);
/// assert_eq!(presented_key(&headers), Some("correct-horse"));
/// assert_eq!(presented_key(&HeaderMap::new()), None);
/// ```
pub fn presented_key(headers: &HeaderMap) -> Option<&str> {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| {
        let (scheme, key) = value.to_str().ok()?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| key.trim_start())
    });
    bearer.or_else(|| headers.get("x-api-key")?.to_str().ok())
}

/// Returns the media type of a body without its parameters, as the client writes it; `None` without a `Content-Type`.
///
/// ```
/// use axum::http::{HeaderMap, HeaderValue, header::CONTENT_TYPE};
///
/// let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8"))]);
/// assert_eq!(formwork_serve::media_type(&headers), Some("text/csv"));
/// ```
pub fn media_type(headers: &HeaderMap) -> Option<&str> {
    let media = headers.get(header::CONTENT_TYPE)?.to_str().unwrap_or_default();
    Some(media.split(';').next().unwrap_or_default().trim())
}

/// Returns whether a body is compressed.
///
/// ```
/// use axum::http::{HeaderMap, HeaderValue, header::CONTENT_ENCODING};
///
/// let headers = HeaderMap::from_iter([(CONTENT_ENCODING, HeaderValue::from_static("gzip"))]);
/// assert!(formwork_serve::is_compressed(&headers) && !formwork_serve::is_compressed(&HeaderMap::new()));
/// ```
pub fn is_compressed(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_ENCODING).is_some_and(|coding| coding != "identity")
}

/// Adds the headers that the status of a failed request requires: `WWW-Authenticate` to 401, and `Connection: close` to 408 and 413.
///
/// ```
/// use axum::http::{StatusCode, header::CONNECTION};
/// use axum::response::IntoResponse;
/// use formwork_serve::with_status_headers;
///
/// let response = with_status_headers(StatusCode::PAYLOAD_TOO_LARGE.into_response());
/// assert_eq!(response.headers()[CONNECTION], "close");
/// ```
pub fn with_status_headers(mut response: Response) -> Response {
    let header = match response.status() {
        StatusCode::UNAUTHORIZED => (header::WWW_AUTHENTICATE, "Bearer"),
        // The rest of the body is not read, so the connection cannot be reused.
        StatusCode::REQUEST_TIMEOUT | StatusCode::PAYLOAD_TOO_LARGE => (header::CONNECTION, "close"),
        _ => return response,
    };
    response.headers_mut().insert(header.0, HeaderValue::from_static(header.1));
    response
}
