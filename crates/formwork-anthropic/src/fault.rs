//! The meaning of the API's errors.

use formwork_core::{Call, Enforcement, Fault, FaultKind, Time, Usage};
use formwork_wire::http::response::Parts;
use formwork_wire::http::{Response, StatusCode};
use formwork_wire::{error_in, fault_of, quoted};
use serde_json::Value;

use crate::Anthropic;
use crate::encode::carrier;

/// The facts of a call that its response is read by.
#[derive(Debug, Clone)]
pub(crate) struct RequestInfo {
    model: String,
    /// A schema was sent.
    has_schema: bool,
    /// The name of the tool whose input is the answer.
    pub(crate) carrier: Option<String>,
    /// An estimate, for servers that do not count.
    input_tokens: u64,
}

impl RequestInfo {
    pub(crate) fn of(wire: &Anthropic, call: &Call) -> Self {
        Self {
            model: wire.model.clone(),
            has_schema: matches!(call.enforcement(), Enforcement::Schema | Enforcement::Tool),
            carrier: carrier(wire, call),
            input_tokens: Usage::estimate(call, 0).input_tokens,
        }
    }

    /// Returns an estimate of the usage of a call that was answered with so many bytes.
    pub(crate) fn estimate(&self, answered: usize) -> Usage {
        let output_tokens = answered.div_ceil(4) as u64;
        Usage::new(self.input_tokens, output_tokens).with_estimated(true)
    }
}

/// Returns the fault that a response with an error status is.
pub(crate) fn of_response(asked: &RequestInfo, head: &Parts, body: &[u8], now: Time) -> Fault {
    let document: Value = serde_json::from_slice(body).unwrap_or_default();
    let mut fault = fault_of(head, body, asked.has_schema, now);
    let request_id = || document.get("request_id").and_then(Value::as_str).map(str::to_owned);
    fault.request_id = fault.request_id.or_else(request_id);
    let said = error_in(&document).unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
    if let Some((kind, advice)) = special(asked, head.status, &said.to_lowercase()) {
        fault.kind = kind;
        if !advice.is_empty() {
            fault.message = format!("{advice}: {}", fault.message);
        }
    }
    fault
}

/// Returns the fault that an error inside of a successful response is.
pub(crate) fn within(asked: &RequestInfo, document: &Value) -> Fault {
    let kind = document.pointer("/error/type").and_then(Value::as_str).unwrap_or_default();
    let (mut head, ()) = Response::new(()).into_parts();
    head.status = status_of(kind);
    let fault = of_response(asked, &head, document.to_string().as_bytes(), Time(0));
    let said = error_in(document).unwrap_or_default();
    // The status was deduced, so the message does not name it.
    Fault::new(fault.kind, format!("the server broke the answer off with an error: {}", quoted(&said)))
        .with_request_id(fault.request_id)
}

/// Returns the status that the API documents for a type of error.
fn status_of(kind: &str) -> StatusCode {
    match kind {
        "invalid_request_error" => StatusCode::BAD_REQUEST,
        "authentication_error" => StatusCode::UNAUTHORIZED,
        "billing_error" => StatusCode::PAYMENT_REQUIRED,
        "permission_error" => StatusCode::FORBIDDEN,
        "not_found_error" => StatusCode::NOT_FOUND,
        "request_too_large" => StatusCode::PAYLOAD_TOO_LARGE,
        "rate_limit_error" => StatusCode::TOO_MANY_REQUESTS,
        "timeout_error" => StatusCode::GATEWAY_TIMEOUT,
        // 529 for `overloaded_error`, 500 for `api_error`: both are failures of the server.
        _ => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// How refusals of a schema read, beside those that all servers share.
const SCHEMA_WORDS: &[&str] = &[
    "schema",
    "output_config.format",
    "output_format",
    "output format",
    "structured output",
    "compiled grammar",
    "strict tool",
    "tool_choice",
    "does not support strict",
];

/// Returns the class of an error that its status alone does not tell, and what to do about it.
fn special(asked: &RequestInfo, status: StatusCode, said: &str) -> Option<(FaultKind, String)> {
    let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
    let found = |kind: FaultKind, advice: &str| Some((kind, advice.to_owned()));
    match status.as_u16() {
        404 if said.contains("model") => {
            let advice = format!("there is no model `{}` for this key", asked.model);
            Some((FaultKind::Unsupported, advice))
        }
        404 | 405 => {
            let advice =
                "nothing answers the Messages API there, check the base URL (it ends before `/v1/messages`)";
            found(FaultKind::Unsupported, advice)
        }
        413 => found(FaultKind::BadRequest, "the request is too large, send less"),
        400 | 422 if says(&["credit balance is too low", "usage limits", "billing"]) => {
            found(FaultKind::NoCredit, "the account has no credit left")
        }
        400 if says(&["prompt is too long", "exceed context limit", "context window"]) => {
            let advice = "prompt and answer do not fit into the model's context, shorten the input or the limit of tokens";
            found(FaultKind::BadRequest, advice)
        }
        400 if says(&["maximum allowed number of output tokens"]) => found(
            FaultKind::BadRequest,
            "the limit of tokens is greater than the model's, set a smaller `max_tokens`",
        ),
        400 if says(&["`temperature`", "temperature is", "`top_p`"]) => {
            let advice =
                "the model does not take the sampling as it is, leave it out or set `temperature = false`";
            found(FaultKind::BadRequest, advice)
        }
        400 if says(&["thinking"]) => {
            found(FaultKind::BadRequest, "the model does not take `thinking` as it is configured")
        }
        400 if says(&["effort"]) => {
            found(FaultKind::BadRequest, "the model does not take `effort` as it is configured")
        }
        400 | 422 if asked.has_schema && says(SCHEMA_WORDS) => {
            found(FaultKind::SchemaRefused, "the server does not take the schema")
        }
        _ => None,
    }
}
