//! Classification of the API's errors, in addition to the rules common to all servers.
//!
//! The rules were collected in 2026 from the vendor's documentation and from bug reports. An error is the object
//! `{"error": {"code", "message", "status", "details"}}`, inside an array if a stream was requested.

use std::time::Duration;

use formwork_core::{Call, Enforcement, Fault, FaultKind, Time, Usage};
use formwork_wire::http::response::Parts;
use formwork_wire::http::{Response, StatusCode};
use formwork_wire::{error_in, fault_of, quoted};
use serde_json::Value;

use crate::Gemini;
use crate::encode::safe_name;

/// The facts of a call that are needed to read its response.
#[derive(Debug, Clone)]
pub(crate) struct RequestInfo {
    pub(crate) model: String,
    pub(crate) enforcement: Enforcement,
    /// The name of the function whose arguments are the document.
    pub(crate) tool: Option<String>,
    /// Whether the model can call functions of the caller.
    pub(crate) has_tools: bool,
    /// The estimated tokens of the prompt, for servers that report no usage.
    pub(crate) input_tokens: u64,
}

impl RequestInfo {
    pub(crate) fn of(wire: &Gemini, call: &Call) -> Self {
        let enforcement = call.enforcement();
        Self {
            model: wire.model.clone(),
            enforcement,
            tool: (enforcement == Enforcement::Tool).then(|| safe_name(&call.schema_name)),
            has_tools: !call.tools.is_empty(),
            input_tokens: Usage::estimate(call, 0).input_tokens,
        }
    }

    /// Returns the estimated usage of a call whose completion has `answered` bytes.
    pub(crate) fn estimate(&self, answered: usize) -> Usage {
        let output_tokens = answered.div_ceil(4) as u64;
        Usage::new(self.input_tokens, output_tokens).with_estimated(true)
    }
}

/// Returns the fault for a response with an error status.
pub(crate) fn of_response(request: &RequestInfo, head: &Parts, body: &[u8], now: Time) -> Fault {
    let document = match serde_json::from_slice(body) {
        Ok(Value::Array(mut all)) if !all.is_empty() => all.swap_remove(0),
        Ok(document) => document,
        Err(_) => Value::Null,
    };
    let alone = if document.is_object() { document.to_string() } else { String::new() };
    let body = if alone.is_empty() { body } else { alone.as_bytes() };
    let mut fault = fault_of(head, body, request.enforcement != Enforcement::None, now);
    let error = ErrorObject::of(&document, body);
    if fault.retry_after.is_none() {
        fault.retry_after = error.retry_delay();
    }
    if let Some((kind, advice)) = special(request, head.status.as_u16(), &error) {
        fault.kind = kind;
        if !advice.is_empty() {
            fault.message = format!("{advice}: {}", fault.message);
        }
    }
    fault
}

/// Returns the fault for an error inside a successful response. Once the model has sent text, the server has accepted the
/// schema, so the error is not a refusal of it.
pub(crate) fn within(request: &RequestInfo, document: &Value, words: &str, after_text: bool) -> Fault {
    let enforcement = if after_text { Enforcement::None } else { request.enforcement };
    let request = RequestInfo { enforcement, ..request.clone() };
    let code = &document["error"]["code"];
    let code =
        code.as_u64().or_else(|| code.as_str()?.parse().ok()).and_then(|code| u16::try_from(code).ok());
    let status = code.and_then(|code| StatusCode::from_u16(code).ok());
    let (mut head, ()) = Response::new(()).into_parts();
    // An error without a usable code, after the response has begun, is a failure of the server.
    head.status = status
        .filter(|status| status.is_client_error() || status.is_server_error())
        .unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    let known = of_response(&request, &head, document.to_string().as_bytes(), Time(0));
    Fault::new(known.kind, format!("the server ended the response with an error: {}", quoted(words)))
        .with_retry_after(known.retry_after)
}

/// The error object of a response.
struct ErrorObject<'d> {
    /// The message in lower case.
    message: String,
    /// `INVALID_ARGUMENT`, `RESOURCE_EXHAUSTED`, …
    status: &'d str,
    details: &'d [Value],
}

impl<'d> ErrorObject<'d> {
    fn of(document: &'d Value, body: &[u8]) -> Self {
        let error = &document["error"];
        let message = error_in(document).unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
        Self {
            message: message.to_lowercase(),
            status: error["status"].as_str().unwrap_or_default(),
            details: error["details"].as_array().map(Vec::as_slice).unwrap_or_default(),
        }
    }

    fn says(&self, words: &[&str]) -> bool {
        words.iter().any(|words| self.message.contains(words))
    }

    fn has_reason(&self, reasons: &[&str]) -> bool {
        self.details.iter().filter_map(|detail| detail["reason"].as_str()).any(|one| reasons.contains(&one))
    }

    /// Returns `retryDelay` of a `RetryInfo`: `"34s"` or `"34.07s"`.
    fn retry_delay(&self) -> Option<Duration> {
        let delay = self.details.iter().find_map(|detail| detail["retryDelay"].as_str())?;
        let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
        Duration::try_from_secs_f64(seconds).ok()
    }

    /// Returns whether a daily quota is exhausted, by the names of the quotas.
    fn is_daily(&self) -> bool {
        let violations = self.details.iter().filter_map(|detail| detail["violations"].as_array()).flatten();
        violations
            .flat_map(|violation| [&violation["quotaId"], &violation["quotaMetric"]])
            .filter_map(Value::as_str)
            .any(|name| {
                let name = name.to_lowercase();
                name.contains("perday") || name.contains("per_day")
            })
    }
}

/// Phrases by which a refusal of the schema or of JSON mode is recognized (status 400).
const SCHEMA_WORDS: &[&str] = &[
    "too many states",
    "should be non-empty for object type",
    "response_schema",
    "responseschema",
    "response_json_schema",
    "responsejsonschema",
    "response_mime_type",
    "response mime type",
    "json mode",
    "nesting depth",
    "proto field is not repeating",
    "json schema",
    "schema is not",
    "invalid schema",
    "schema produces",
    "controlled generation",
    "structured output",
    "parameters_json_schema",
    "function_declarations",
    "functiondeclaration",
    "function calling",
];

/// Returns the class of an error that is not determined by its status alone, with advice on what to do.
fn special(request: &RequestInfo, status: u16, error: &ErrorObject<'_>) -> Option<(FaultKind, String)> {
    let model = &request.model;
    let is = |kind, advice: &str| Some((kind, advice.to_owned()));
    if error.has_reason(&["API_KEY_INVALID", "API_KEY_EXPIRED", "API_KEY_SERVICE_BLOCKED"])
        || status == 400 && error.says(&["api key not valid", "api key expired", "api key not found"])
    {
        return is(FaultKind::Auth, "the server refused the API key");
    }
    if status == 403 && error.has_reason(&["SERVICE_DISABLED"]) {
        return is(FaultKind::Auth, "the API is not enabled for this project");
    }
    if status == 429 {
        return if error.is_daily() {
            is(FaultKind::NoCredit, "the daily quota is exhausted")
        } else if error.says(&["limit: 0,", "limit: 0\n", "prepayment credits", "spending cap"]) {
            is(FaultKind::NoCredit, "the account has no quota for this model")
        } else {
            // Limits per minute have the same message about plan and billing, so it does not mean missing credit.
            is(FaultKind::RateLimited, "")
        };
    }
    if status == 404 {
        return Some((
            FaultKind::Unsupported,
            format!(
                "the model `{model}` does not exist on this server, or the base URL belongs to another API"
            ),
        ));
    }
    if status == 499 || error.status == "UNAVAILABLE" {
        return is(FaultKind::Overloaded, "");
    }
    if status != 400 {
        return None;
    }
    if error.says(&["exceeds the maximum number of tokens", "input token count"]) {
        return is(FaultKind::BadRequest, "the prompt exceeds the model's context window, shorten the input");
    }
    if error.says(&["user location is not supported", "not available in your country"]) {
        return is(FaultKind::Unsupported, "the vendor does not offer the API in this region");
    }
    if error.says(&[
        "thinking_budget",
        "thinking budget",
        "thinking level",
        "thinking_level",
        "thinking mode",
    ]) {
        return is(
            FaultKind::BadRequest,
            "the model refuses the thinking settings: set `thinking_budget` before Gemini 3, `thinking_level` from Gemini 3 on, or neither",
        );
    }
    // This is the message of LiteLLM's proxy.
    if error.says(&["invalid model name"]) {
        return Some((FaultKind::Unsupported, format!("the model `{model}` does not exist on this server")));
    }
    let names_nothing = error.message.trim_end_matches('.') == "request contains an invalid argument";
    let has_schema = request.enforcement != Enforcement::None;
    // The API refuses a schema that exceeds some limits without giving a reason.
    (has_schema && (error.says(SCHEMA_WORDS) || names_nothing))
        .then(|| (FaultKind::SchemaRefused, "the server refused the schema".to_owned()))
}
