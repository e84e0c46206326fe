//! The trace that a request belongs to, as W3C Trace Context has it.

use axum::http::{HeaderMap, HeaderName};

static PARENT: HeaderName = HeaderName::from_static("traceparent");

/// The longest `tracestate` that is passed on, in bytes: as much as the specification asks of everyone.
const MAX_STATE: usize = 512;

/// Returns the headers of the trace; none if `traceparent` is missing or breaks the specification, whose reader then has to act
/// as if it were missing.
pub(crate) fn of(headers: &HeaderMap) -> HeaderMap {
    let mut trace = HeaderMap::new();
    if id(headers).is_some()
        && let Some(parent) = headers.get(&PARENT)
    {
        trace.insert(PARENT.clone(), parent.clone());
        if let Some(state) = headers.get("tracestate").filter(|state| state.len() <= MAX_STATE) {
            trace.insert("tracestate", state.clone());
        }
    }
    trace
}

/// Returns the identifier of the trace.
pub(crate) fn id(headers: &HeaderMap) -> Option<&str> {
    let parent = headers.get(&PARENT)?.to_str().ok()?;
    let mut parts = parent.split('-');
    let is_hex = |part: &str, length: usize| {
        part.len() == length && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_id = |part: &str, length: usize| is_hex(part, length) && part.bytes().any(|byte| byte != b'0');
    let version = parts.next().filter(|version| is_hex(version, 2) && *version != "ff")?;
    let trace = parts.next().filter(|trace| is_id(trace, 32))?;
    parts.next().filter(|span| is_id(span, 16))?;
    parts.next().filter(|flags| is_hex(flags, 2))?;
    // Later versions may have more parts.
    (version != "00" || parts.next().is_none()).then_some(trace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_breaks_the_specification_is_no_trace() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let zeros = "00-00000000000000000000000000000000-00f067aa0ba902b7-01";
        for (parent, is_trace) in [
            (good.to_owned(), true),
            (good.replacen("00", "cc", 1) + "-more", true),
            (good.to_owned() + "-more", false),
            (good.replacen("00", "ff", 1), false),
            (good.to_uppercase(), false),
            (good.replace("b7", "b"), false),
            (zeros.to_owned(), false),
            (String::new(), false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("traceparent", parent.parse().unwrap());
            headers.insert("tracestate", "a=1".parse().unwrap());
            let expected = is_trace.then_some("4bf92f3577b34da6a3ce929d0e0e4736");
            assert_eq!(id(&headers), expected, "{parent}");
            assert_eq!(of(&headers).len(), if is_trace { 2 } else { 0 }, "{parent}");
        }
    }
}
