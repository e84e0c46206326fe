//! The meaning of error responses, as far as all servers agree.

use std::time::{Duration, SystemTime};

use formwork_core::{Fault, FaultKind, Time};
use http::StatusCode;
use http::response::Parts;
use serde_json::Value;

/// How much of a server's words is shown, in characters.
const QUOTED: usize = 500;

/// Words of servers about a schema that they do not take, with 400, 422, 500 or 502 (measured and collected in 2026: OpenAI,
/// llama.cpp, Ollama, vLLM, Anthropic, Gemini).
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

/// Words of servers about an account without credit, mostly with 429.
const CREDIT_WORDS: &[&str] =
    &["insufficient_quota", "exceeded your current quota", "credit balance", "billing"];

/// How the message of [`closed_early`] begins.
const CLOSED_EARLY: &str = "the server closed the connection without an answer";

/// The fault of a connection that was made, took the request, and was closed without a response: a server that restarts,
/// or that the request has brought down. `detail` is the transport's own word for it.
pub fn closed_early(detail: &str) -> Fault {
    Fault::new(FaultKind::Unreachable, format!("{CLOSED_EARLY}: {}", quoted(detail)))
}

/// Whether a fault was made by [`closed_early`]; a server that was not there at all is not.
pub fn is_closed_early(fault: &Fault) -> bool {
    fault.kind == FaultKind::Unreachable && fault.message.starts_with(CLOSED_EARLY)
}

/// Returns the fault that a response with an error status is, with its kind, delay and request id. A [`Wire`](crate::Wire)
/// whose server says some of this in words of its own changes the fault afterwards.
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
///
/// `has_schema` says whether the request asked for a schema to be
/// enforced; `now` is what dates are compared with where the response has none itself.
pub fn fault_of(head: &Parts, body: &[u8], has_schema: bool, now: Time) -> Fault {
    let said = words(body);
    let kind = kind_of(head.status, &said.to_lowercase(), has_schema);
    let mut message = format!("{}: {}", status_words(head.status), quoted(&said));
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

fn kind_of(status: StatusCode, said: &str, has_schema: bool) -> FaultKind {
    let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
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

/// The words of an error body: those of a known envelope, else the body itself.
fn words(body: &[u8]) -> String {
    let known = serde_json::from_slice(body).ok().and_then(|document: Value| {
        let words = error_in(&document)?;
        // Codes are what some servers tell classes apart by.
        let code =
            document.pointer("/error/code").and_then(Value::as_str).filter(|code| !words.contains(code));
        Some(code.map_or_else(|| words.clone(), |code| format!("{words} ({code})")))
    });
    known.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned())
}

/// The message of an error envelope: `{"error": {"message": …}}`, `{"error": "…"}`, `{"message": …}`, `{"detail": …}`.
/// `None` if the document is none.
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

/// A server's words, in quotation marks, on one line, and at most 500 characters of them.
pub fn quoted(words: &str) -> String {
    let line: String = words.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{:?} …", &line[..end]),
        None => format!("{line:?}"),
    }
}

/// The media type of a response in lower case as it stands, without its parameters.
pub fn media_type(head: &Parts) -> Option<&str> {
    let value = head.headers.get(http::header::CONTENT_TYPE)?.to_str().ok()?;
    Some(value.split(';').next().unwrap_or(value).trim())
}

/// The server's identifier of a request.
pub fn request_id(head: &Parts) -> Option<String> {
    let named = ["x-request-id", "request-id", "x-amzn-requestid", "cf-ray"];
    named.iter().find_map(|name| head.headers.get(*name)?.to_str().ok()).map(str::to_owned)
}

/// How long a server asks to wait: `retry-after-ms`, or `retry-after` in seconds or as a date (RFC 9110, section 10.2.3).
/// A date is compared with the response's own, or with `now`. `None` if it does not ask, or not in a way that is known.
pub fn retry_after(head: &Parts, now: Time) -> Option<Duration> {
    let text = |name: &str| head.headers.get(name)?.to_str().ok().map(str::trim);
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    if let Some(milliseconds) = text("retry-after-ms").and_then(number) {
        return Duration::try_from_secs_f64(milliseconds / 1000.0).ok();
    }
    let asked = text("retry-after")?;
    if let Some(seconds) = number(asked) {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = httpdate::parse_http_date(asked).ok()?;
    let now = text("date")
        .and_then(|date| httpdate::parse_http_date(date).ok())
        .unwrap_or_else(|| SystemTime::UNIX_EPOCH + Duration::from_millis(now.0));
    Some(until.duration_since(now).unwrap_or_default())
}
