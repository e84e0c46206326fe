//! Classification of error responses by the rules common to all servers.

use std::time::{Duration, SystemTime};

use formwork_core::{Fault, FaultKind, Time};
use http::StatusCode;
use http::response::Parts;
use serde_json::Value;

/// The maximum length of a quotation of a server's message, in characters.
const QUOTED: usize = 500;

/// Phrases in messages of servers that refuse a schema, with status 400, 422, 500 or 502 (collected in 2026 from OpenAI,
/// llama.cpp, Ollama, vLLM, Anthropic and Gemini).
const SCHEMA_WORDS: &[&str] = &[
    "invalid schema for",
    "invalid json schema",
    "is not permitted",
    "json schema conversion failed",
    "json schema error",
    "failed to parse grammar",
    "error parsing grammar",
    "too many states",
    "compiled grammar is too large",
    "too complex for compilation",
    "too many parameters with union types",
    "unknown name",
    "features not supported by xgrammar",
    "model runner has unexpectedly stopped",
    "response_format",
    "invalid format:",
];

/// Phrases in messages about an account without credit, usually with status 429.
const CREDIT_WORDS: &[&str] =
    &["insufficient_quota", "exceeded your current quota", "credit balance", "billing"];

/// The beginning of the message of [`closed_early`].
const CLOSED_EARLY: &str = "the server closed the connection without a response";

/// Returns the fault for a connection that the server closed after the request and before a response: the server restarts, or
/// the request crashed it. `detail` is the transport's description.
///
/// ```
/// use formwork_wire::{closed_early, is_closed_early};
///
/// let fault = closed_early("connection reset by peer");
/// assert!(is_closed_early(&fault) && fault.kind.is_transient());
/// ```
pub fn closed_early(detail: &str) -> Fault {
    Fault::new(FaultKind::Unreachable, format!("{CLOSED_EARLY}: {}", quoted(detail)))
}

/// Returns whether a fault was created by [`closed_early`]. An unreachable server is a different fault.
///
/// ```
/// use formwork_core::{Fault, FaultKind};
///
/// let refused = Fault::new(FaultKind::Unreachable, "connection refused");
/// assert!(!formwork_wire::is_closed_early(&refused));
/// ```
pub fn is_closed_early(fault: &Fault) -> bool {
    fault.kind == FaultKind::Unreachable && fault.message.starts_with(CLOSED_EARLY)
}

/// Returns the fault for a response with an error status: its class, retry delay and request identifier. A
/// [`Wire`](crate::Wire) with special error messages changes the fault afterwards.
///
/// `has_schema`: whether the request has an enforced schema. Dates are compared with the `Date` of the response, or with `now`
/// if it has none.
///
/// ```
/// use std::time::Duration;
///
/// use formwork_core::{FaultKind, Time};
/// use formwork_wire::fault_of;
/// use formwork_wire::http::Response;
///
/// let response = Response::builder().status(429).header("retry-after", "7").body(())?;
/// let (head, ()) = response.into_parts();
/// let fault = fault_of(&head, br#"{"error": {"message": "slow down"}}"#, false, Time(0));
/// assert_eq!((fault.kind, fault.retry_after), (FaultKind::RateLimited, Some(Duration::from_secs(7))));
/// # Ok::<(), formwork_wire::http::Error>(())
/// ```
pub fn fault_of(head: &Parts, body: &[u8], has_schema: bool, now: Time) -> Fault {
    let error_words = words(body);
    let kind = kind_of(head.status, &error_words.to_lowercase(), has_schema);
    let mut message = format!("{}: {}", status_words(head.status), quoted(&error_words));
    if head.status.is_redirection() {
        let to =
            head.headers.get(http::header::LOCATION).and_then(|to| to.to_str().ok()).unwrap_or("elsewhere");
        message =
            format!("the server redirects to {}; redirects are not followed, set the base URL", quoted(to));
    }
    Fault::new(kind, message)
        .with_status(head.status.as_u16())
        .with_retry_after(retry_after(head, now))
        .with_request_id(request_id(head))
}

fn kind_of(status: StatusCode, error_words: &str, has_schema: bool) -> FaultKind {
    let says = |words: &[&str]| words.iter().any(|word| error_words.contains(word));
    let code = status.as_u16();
    if has_schema && matches!(code, 400 | 422 | 500 | 502) && says(SCHEMA_WORDS) {
        return FaultKind::SchemaRefused;
    }
    match code {
        401 | 403 => FaultKind::Auth,
        402 => FaultKind::NoCredit,
        404 | 405 | 410 | 501 => FaultKind::Unsupported,
        408 | 504 => FaultKind::Timeout,
        429 if says(CREDIT_WORDS) => FaultKind::NoCredit,
        429 => FaultKind::RateLimited,
        409 | 425 | 500.. => FaultKind::Overloaded,
        300..=399 => FaultKind::BadWire,
        _ => FaultKind::BadRequest,
    }
}

fn status_words(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("{} {reason}", status.as_u16()),
        None => status.as_u16().to_string(),
    }
}

/// Returns the message of an error body: the message of a known envelope, else the body itself.
fn words(body: &[u8]) -> String {
    let known = serde_json::from_slice(body).ok().and_then(|document: Value| {
        let words = error_in(&document)?;
        // Some servers distinguish errors only by a code.
        let code =
            document.pointer("/error/code").and_then(Value::as_str).filter(|code| !words.contains(code));
        Some(code.map_or_else(|| words.clone(), |code| format!("{words} ({code})")))
    });
    known.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned())
}

/// Returns the message of an error envelope (`{"error": {"message": …}}`, `{"error": "…"}`, `{"message": …}` or `{"detail":
/// …}`), or `None` for any other document.
///
/// ```
/// use formwork_wire::error_in;
/// use serde_json::json;
///
/// assert_eq!(error_in(&json!({"error": {"message": "no such model"}})).as_deref(), Some("no such model"));
/// assert_eq!(error_in(&json!({"choices": []})), None);
/// ```
pub fn error_in(document: &Value) -> Option<String> {
    let error = match document.get("error") {
        None | Some(Value::Null) => None,
        Some(Value::String(words)) => Some(words.clone()),
        Some(error) => Some(match error.get("message") {
            Some(Value::String(words)) => words.clone(),
            _ => error.to_string(),
        }),
    };
    error.or_else(|| {
        let object = document.get("object").and_then(Value::as_str) == Some("error");
        let member = document.get("message").or_else(|| document.get("detail"))?;
        let alone = document.as_object().is_some_and(|all| !all.contains_key("choices"));
        (object || alone).then(|| member.as_str().map_or_else(|| member.to_string(), str::to_owned))
    })
}

/// Returns a server's message in quotation marks, on one line, truncated to 500 characters.
///
/// ```
/// assert_eq!(formwork_wire::quoted("no such\n  model"), "\"no such model\"");
/// ```
pub fn quoted(words: &str) -> String {
    let line: String = words.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{:?} …", &line[..end]),
        None => format!("{line:?}"),
    }
}

/// Returns the media type of a response without its parameters and in its original case, or `None` without `Content-Type`.
///
/// ```
/// use formwork_wire::http::Response;
///
/// let (head, ()) = Response::builder().header("content-type", "text/event-stream; charset=utf-8").body(())?.into_parts();
/// assert_eq!(formwork_wire::media_type(&head), Some("text/event-stream"));
/// # Ok::<(), formwork_wire::http::Error>(())
/// ```
pub fn media_type(head: &Parts) -> Option<&str> {
    let value = head.headers.get(http::header::CONTENT_TYPE)?.to_str().ok()?;
    Some(value.split(';').next().unwrap_or(value).trim())
}

/// Returns the server's identifier of a request, from the header `x-request-id`, `request-id`, `x-amzn-requestid` or `cf-ray`.
///
/// ```
/// use formwork_wire::http::Response;
///
/// let (head, ()) = Response::builder().header("x-request-id", "req_7").body(())?.into_parts();
/// assert_eq!(formwork_wire::request_id(&head).as_deref(), Some("req_7"));
/// # Ok::<(), formwork_wire::http::Error>(())
/// ```
pub fn request_id(head: &Parts) -> Option<String> {
    let named = ["x-request-id", "request-id", "x-amzn-requestid", "cf-ray"];
    named.iter().find_map(|name| head.headers.get(*name)?.to_str().ok()).map(str::to_owned)
}

/// Returns the delay that a server requests before a retry, or `None` without a valid header.
///
/// The headers are `retry-after-ms`, or `retry-after` in seconds or as a date (RFC 9110, section 10.2.3). A date is compared
/// with the `Date` of the response, or with `now` if it has none.
///
/// ```
/// use std::time::Duration;
/// use formwork_core::Time;
/// use formwork_wire::http::Response;
///
/// let (head, ()) = Response::builder().header("retry-after-ms", "250").body(())?.into_parts();
/// assert_eq!(formwork_wire::retry_after(&head, Time(0)), Some(Duration::from_millis(250)));
/// # Ok::<(), formwork_wire::http::Error>(())
/// ```
pub fn retry_after(head: &Parts, now: Time) -> Option<Duration> {
    let text = |name: &str| head.headers.get(name)?.to_str().ok().map(str::trim);
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    if let Some(milliseconds) = text("retry-after-ms").and_then(number) {
        return Duration::try_from_secs_f64(milliseconds / 1000.0).ok();
    }
    let delay_text = text("retry-after")?;
    if let Some(seconds) = number(delay_text) {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = httpdate::parse_http_date(delay_text).ok()?;
    let now = text("date")
        .and_then(|date| httpdate::parse_http_date(date).ok())
        .unwrap_or_else(|| SystemTime::UNIX_EPOCH + Duration::from_millis(now.0));
    Some(until.duration_since(now).unwrap_or_default())
}
