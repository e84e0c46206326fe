//! The headers of vendors that pass through.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// The headers of a request that the target gets to see.
static SENT: [HeaderName; 3] = [
    HeaderName::from_static("anthropic-version"),
    HeaderName::from_static("anthropic-beta"),
    HeaderName::from_static("openai-beta"),
];

/// Returns the headers of a request that the target gets to see.
pub(crate) fn sent(headers: &HeaderMap) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
    SENT.iter().filter_map(|name| Some((name, headers.get(name)?)))
}
