use std::future::Future;

use http::{HeaderMap, HeaderName};

/// The headers of W3C Trace Context.
const HEADERS: [HeaderName; 2] =
    [HeaderName::from_static("traceparent"), HeaderName::from_static("tracestate")];

tokio::task_local! {
    static TRACE: HeaderMap;
}

/// Runs a future whose requests carry these headers of [W3C Trace Context](https://www.w3.org/TR/trace-context/), so that
/// servers join the trace of the caller. Tasks that the future spawns do not have them.
///
/// Headers other than `traceparent` and `tracestate` are ignored, and those that a transport is configured with come first.
///
/// ```
/// use formwork_http::with_trace;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let mut headers = http::HeaderMap::new();
/// headers.insert("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().unwrap());
/// with_trace(headers, async { /* calls */ }).await;
/// # }
/// ```
pub async fn with_trace<F: Future>(headers: HeaderMap, future: F) -> F::Output {
    TRACE.scope(headers, future).await
}

/// Adds the headers of the trace that this task belongs to, if there is one.
pub(crate) fn add_trace(headers: &mut HeaderMap) {
    // Outside of a trace there is nothing to add.
    _ = TRACE.try_with(|trace| {
        for name in HEADERS {
            if let Some(value) = trace.get(&name)
                && !headers.contains_key(&name)
            {
                headers.insert(name, value.clone());
            }
        }
    });
}
