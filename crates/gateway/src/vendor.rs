//! The headers of vendors that pass through.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// The headers of a request that the target gets to see.
static SENT: [HeaderName; 3] = [
    HeaderName::from_static("anthropic-version"),
    HeaderName::from_static("anthropic-beta"),
    HeaderName::from_static("openai-beta"),
];

/// Returns the headers of a request that the target gets to see. The values of several lines of a header are one list.
pub(crate) fn sent(headers: &HeaderMap) -> impl Iterator<Item = (&HeaderName, HeaderValue)> {
    SENT.iter().filter(|name| headers.contains_key(*name)).filter_map(|name| {
        let lines: Vec<_> = headers.get_all(name).iter().map(HeaderValue::as_bytes).collect();
        Some((name, HeaderValue::from_bytes(&lines.join(b",".as_slice())).ok()?))
    })
}

/// Returns whether a request asks for parts of the protocol that are in testing, which only a target of the protocol has.
pub(crate) fn asks_for_beta(headers: &HeaderMap) -> bool {
    SENT.iter().any(|name| name.as_str().ends_with("-beta") && headers.contains_key(name))
}
