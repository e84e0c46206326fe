//! The meaning of this protocol's errors, beyond what all servers agree on.
//!
//! Collected in 2026 from the vendor's documentation and from reports of errors: an envelope `{"error": {"code", "message",
//! "status", "details"}}`, in an array where a stream was asked for.

use std::time::Duration;

use formwork_core::{Call, Enforcement, Fault, FaultKind, Time, Usage};
use formwork_wire::http::response::Parts;
use formwork_wire::http::{Response, StatusCode};
use formwork_wire::{error_in, fault_of, quoted};
use serde_json::Value;

use crate::Gemini;
use crate::encode::safe_name;

/// The facts of a call that its response is read by.
#[derive(Debug, Clone)]
pub(crate) struct RequestInfo {
    pub(crate) model: String,
    pub(crate) enforcement: Enforcement,
    /// The name of the function whose arguments are the answer.
    pub(crate) tool: Option<String>,
    /// An estimate, for servers that do not count.
    pub(crate) input_tokens: u64,
}

impl RequestInfo {
    pub(crate) fn of(wire: &Gemini, call: &Call) -> Self {
        let enforcement = call.enforcement();
        Self {
            model: wire.model.clone(),
            enforcement,
            tool: (enforcement == Enforcement::Tool).then(|| safe_name(&call.schema_name)),
            input_tokens: Usage::estimate(call, 0).input_tokens,
        }
    }

    /// Estimates the usage of a call whose answer has so many bytes.
    pub(crate) fn estimate(&self, answered: usize) -> Usage {
        let output_tokens = answered.div_ceil(4) as u64;
        Usage::new(self.input_tokens, output_tokens).with_estimated(true)
    }
}

/// Returns the fault that a response with an error status means.
pub(crate) fn of_response(asked: &RequestInfo, head: &Parts, body: &[u8], now: Time) -> Fault {
    let document = match serde_json::from_slice(body) {
        Ok(Value::Array(mut all)) if !all.is_empty() => all.swap_remove(0),
        Ok(document) => document,
        Err(_) => Value::Null,
    };
    let alone = if document.is_object() { document.to_string() } else { String::new() };
    let body = if alone.is_empty() { body } else { alone.as_bytes() };
    let mut fault = fault_of(head, body, asked.enforcement != Enforcement::None, now);
    let said = Said::of(&document, body);
    if fault.retry_after.is_none() {
        fault.retry_after = said.retry_delay();
    }
    if let Some((kind, advice)) = special(asked, head.status.as_u16(), &said) {
        fault.kind = kind;
        if !advice.is_empty() {
            fault.message = format!("{advice}: {}", fault.message);
        }
    }
    fault
}

/// Returns the fault of an error inside a successful response. After the first text the schema is not at fault any more.
pub(crate) fn within(asked: &RequestInfo, document: &Value, words: &str, after_text: bool) -> Fault {
    let enforcement = if after_text { Enforcement::None } else { asked.enforcement };
    let asked = RequestInfo { enforcement, ..asked.clone() };
    let code = &document["error"]["code"];
    let code =
        code.as_u64().or_else(|| code.as_str()?.parse().ok()).and_then(|code| u16::try_from(code).ok());
    let status = code.and_then(|code| StatusCode::from_u16(code).ok());
    let (mut head, ()) = Response::new(()).into_parts();
    // Something failed on the other side after it had begun to answer.
    head.status = status
        .filter(|status| status.is_client_error() || status.is_server_error())
        .unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    let known = of_response(&asked, &head, document.to_string().as_bytes(), Time(0));
    Fault::new(known.kind, format!("the server broke off with an error: {}", quoted(words)))
        .with_retry_after(known.retry_after)
}

/// An error as the server tells it.
struct Said<'d> {
    /// The message in lower case.
    message: String,
    /// `INVALID_ARGUMENT`, `RESOURCE_EXHAUSTED`, …
    status: &'d str,
    details: &'d [Value],
}

impl<'d> Said<'d> {
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

    /// How long the server asks to wait: `"34s"` or `"34.07s"` in a `RetryInfo`.
    fn retry_delay(&self) -> Option<Duration> {
        let delay = self.details.iter().find_map(|detail| detail["retryDelay"].as_str())?;
        let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
        Duration::try_from_secs_f64(seconds).ok()
    }

    /// Whether a quota for a day is used up, by the names of the quotas.
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

/// Refusals of a schema or of the JSON mode, with status 400.
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

/// Returns the kinds of errors that are told apart, with advice for people.
fn special(asked: &RequestInfo, status: u16, said: &Said<'_>) -> Option<(FaultKind, String)> {
    let model = &asked.model;
    let is = |kind, advice: &str| Some((kind, advice.to_owned()));
    if said.has_reason(&["API_KEY_INVALID", "API_KEY_EXPIRED", "API_KEY_SERVICE_BLOCKED"])
        || status == 400 && said.says(&["api key not valid", "api key expired", "api key not found"])
    {
        return is(FaultKind::Auth, "the API key is not valid");
    }
    if status == 403 && said.has_reason(&["SERVICE_DISABLED"]) {
        return is(FaultKind::Auth, "the API is not enabled for this project");
    }
    if status == 429 {
        return if said.is_daily() {
            is(FaultKind::NoCredit, "the quota of this day is used up")
        } else if said.says(&["limit: 0,", "limit: 0\n", "prepayment credits", "spending cap"]) {
            is(FaultKind::NoCredit, "the account has no quota for this model")
        } else {
            // The words about plan and billing come with limits of a minute as well.
            is(FaultKind::RateLimited, "")
        };
    }
    if status == 404 {
        return Some((
            FaultKind::Unsupported,
            format!("the model `{model}` does not exist there, or the base URL is another API's"),
        ));
    }
    if status == 499 || said.status == "UNAVAILABLE" {
        return is(FaultKind::Overloaded, "");
    }
    if status != 400 {
        return None;
    }
    if said.says(&["exceeds the maximum number of tokens", "input token count"]) {
        return is(FaultKind::BadRequest, "the prompt does not fit into the model's context");
    }
    if said.says(&["user location is not supported", "not available in your country"]) {
        return is(FaultKind::Unsupported, "the vendor does not serve this region");
    }
    if said.says(&["thinking_budget", "thinking budget", "thinking level", "thinking_level", "thinking mode"])
    {
        return is(
            FaultKind::BadRequest,
            "set `thinking_budget` (before Gemini 3) or `thinking_level` (from 3 on) as this model takes it, or neither",
        );
    }
    // LiteLLM's proxy
    if said.says(&["invalid model name"]) {
        return Some((FaultKind::Unsupported, format!("the model `{model}` does not exist there")));
    }
    let names_nothing = said.message.trim_end_matches('.') == "request contains an invalid argument";
    let has_schema = asked.enforcement != Enforcement::None;
    // A schema that is over some limit is refused without a reason.
    (has_schema && (said.says(SCHEMA_WORDS) || names_nothing))
        .then(|| (FaultKind::SchemaRefused, "the server does not take the schema".to_owned()))
}
