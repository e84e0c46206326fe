//! Classification of errors.

mod envelope;
mod limits;
mod table;

use std::time::{Duration, SystemTime};

use formwork_core::{Connection, Enforcement, Fault, FaultKind, RateLimit, Time};
use http::StatusCode;
use http::response::Parts;
use serde_json::Value;

use crate::RequestInfo;
use envelope::{document_of, message_of, name_in};
use table::ErrorText;

pub use envelope::error_in;
pub use limits::rate_limits;

/// The maximum length of a quotation of a server's message, in characters.
const QUOTED: usize = 500;

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
    let message = format!("{CLOSED_EARLY}: {}", quoted(detail));
    Fault::new(FaultKind::Unreachable, message).with_connection(Connection::Broken)
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
/// use formwork_core::{FaultKind, RateLimit, Time};
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
    let enforcement = if has_schema { Enforcement::Schema } else { Enforcement::None };
    RequestInfo { enforcement, ..RequestInfo::default() }.fault(head, body, now)
}

impl RequestInfo {
    /// Returns the fault for a response with an error status: its class, advice on what to do, retry delay and request identifier.
    /// The class is determined by the table of phrases for the protocol.
    pub fn fault(&self, head: &Parts, body: &[u8], now: Time) -> Fault {
        let document = document_of(body);
        let (kind, advice) = ErrorText::of(&document, body).class(self, head.status.as_u16());
        let message = match head.headers.get(http::header::LOCATION) {
            location if head.status.is_redirection() => {
                let to = location.and_then(|to| to.to_str().ok()).unwrap_or("elsewhere");
                format!(
                    "the server redirects to {}; redirects are not followed, set the base URL",
                    quoted(to)
                )
            }
            _ => format!("{}: {}", status_words(head.status), quoted(&words(&document, body))),
        };
        let pause = || {
            RateLimit::pause(&rate_limits(head, now)).filter(|_| head.status == StatusCode::TOO_MANY_REQUESTS)
        };
        let wait = || retry_after(head, now).or_else(|| retry_delay(&document)).or_else(pause);
        Fault::new(kind, advised(message, &advice))
            .with_status(head.status.as_u16())
            .with_retry_after(wait())
            .with_request_id(request_id(head).or_else(|| request_id_in(&document)))
            .with_code(name_in(&document, "code"))
            .with_param(name_in(&document, "param"))
    }

    /// Returns the fault for an error inside a successful response. Once the model has sent text, the server has accepted the
    /// schema, so the error is not a refusal of it.
    pub fn fault_within(&self, document: &Value, after_text: bool) -> Fault {
        let mut request = self.clone();
        if after_text {
            request.enforcement = Enforcement::None;
            request.has_pattern = false;
        }
        let error = ErrorText::of(document, b"");
        let numbers = ["/error/code", "/error/status", "/code", "/status"].into_iter();
        let mut numbers = numbers.filter_map(|place| {
            let number = document.pointer(place)?;
            number.as_u64().or_else(|| number.as_str()?.parse().ok())
        });
        let status =
            numbers.find(|number| (400..600).contains(number)).and_then(|one| u16::try_from(one).ok());
        // An unknown error within a response is a failure of the server.
        let status = status.or_else(|| error.status()).unwrap_or(500);
        let (kind, advice) = error.class(&request, status);
        let words = error_in(document).unwrap_or_default();
        let message = format!("the server ended the response with an error: {}", quoted(&words));
        // Advice in front of the message is meant for a status.
        let advice = if advice.starts_with(';') { advice } else { String::new() };
        Fault::new(kind, advised(message, &advice))
            .with_retry_after(retry_delay(document))
            .with_request_id(request_id_in(document))
            .with_code(name_in(document, "code"))
            .with_param(name_in(document, "param"))
    }
}

/// Returns whether an error document has one of the signs in a list of the table of phrases, for example `prompt filtered`.
///
/// ```
/// let document = serde_json::json!({"error": {"message": "no", "code": "content_filter"}});
/// assert!(formwork_wire::is_error(&document, "prompt filtered"));
/// ```
pub fn is_error(document: &Value, list: &str) -> bool {
    ErrorText::of(document, b"").is(list)
}

/// Adds advice to a message: after it if the advice begins with a semicolon, in front of it otherwise.
fn advised(message: String, advice: &str) -> String {
    match advice {
        "" => message,
        after if after.starts_with(';') => message + after,
        before => format!("{before}: {message}"),
    }
}

fn status_words(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("{} {reason}", status.as_u16()),
        None => status.as_u16().to_string(),
    }
}

/// Returns the message of an error with its code, because some servers distinguish errors only by a code.
fn words(document: &Value, body: &[u8]) -> String {
    let message = message_of(document, body);
    match document.pointer("/error/code").and_then(Value::as_str) {
        Some(code) if !message.contains(code) => format!("{message} ({code})"),
        _ => message,
    }
}

/// Returns the identifier of the request in an error of Anthropic.
fn request_id_in(document: &Value) -> Option<String> {
    document["request_id"].as_str().map(str::to_owned)
}

/// Returns `retryDelay` of Google's `RetryInfo`: `"34s"` or `"34.07s"`.
fn retry_delay(document: &Value) -> Option<Duration> {
    let details = document["error"]["details"].as_array()?;
    let delay = details.iter().find_map(|detail| detail["retryDelay"].as_str())?;
    Duration::try_from_secs_f64(delay.strip_suffix('s')?.parse().ok()?).ok()
}

/// Returns the fault for a response that violates the protocol, with the beginning of the body.
///
/// ```
/// let fault = formwork_wire::bad_wire("the response is not JSON", b"<html>");
/// assert_eq!(fault.message, "the response is not JSON: \"<html>\"");
/// ```
pub fn bad_wire(what: &str, body: &[u8]) -> Fault {
    Fault::new(FaultKind::BadWire, format!("{what}: {}", quoted(&String::from_utf8_lossy(body))))
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
