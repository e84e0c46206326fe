//! Classification of the API's errors.

use formwork_core::{Call, Enforcement, Fault, FaultKind, Time, Usage};
use formwork_wire::http::response::Parts;
use formwork_wire::http::{Response, StatusCode};
use formwork_wire::{error_in, fault_of, quoted};
use serde_json::Value;

use crate::Anthropic;
use crate::encode::carrier;

/// The facts of a call that are needed to read its response.
#[derive(Debug, Clone)]
pub(crate) struct RequestInfo {
    model: String,
    /// Whether the request has a schema.
    has_schema: bool,
    /// The name of the tool whose input is the document.
    pub(crate) carrier: Option<String>,
    /// Whether the model can call tools of the caller.
    pub(crate) has_tools: bool,
    /// The estimated tokens of the prompt, for servers that report no usage.
    input_tokens: u64,
}

impl RequestInfo {
    pub(crate) fn of(wire: &Anthropic, call: &Call) -> Self {
        Self {
            model: wire.model.clone(),
            has_schema: matches!(call.enforcement(), Enforcement::Schema | Enforcement::Tool),
            carrier: carrier(wire, call),
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
    let document: Value = serde_json::from_slice(body).unwrap_or_default();
    let mut fault = fault_of(head, body, request.has_schema, now);
    let request_id = || document.get("request_id").and_then(Value::as_str).map(str::to_owned);
    fault.request_id = fault.request_id.or_else(request_id);
    let message = error_in(&document).unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
    if let Some((kind, advice)) = special(request, head.status, &message.to_lowercase()) {
        fault.kind = kind;
        if !advice.is_empty() {
            fault.message = format!("{advice}: {}", fault.message);
        }
    }
    fault
}

/// Returns the fault for an error event inside a successful response.
pub(crate) fn within(request: &RequestInfo, document: &Value) -> Fault {
    let kind = document.pointer("/error/type").and_then(Value::as_str).unwrap_or_default();
    let (mut head, ()) = Response::new(()).into_parts();
    head.status = status_of(kind);
    let fault = of_response(request, &head, document.to_string().as_bytes(), Time(0));
    let message = error_in(document).unwrap_or_default();
    // The status was derived from the type of the error and not received, so the message does not name it.
    Fault::new(fault.kind, format!("the server ended the response with an error: {}", quoted(&message)))
        .with_request_id(fault.request_id)
}

/// Returns the HTTP status that Anthropic's documentation gives for a type of error.
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
        // The API sends 529 for `overloaded_error` and 500 for `api_error`: both are failures of the server.
        _ => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// Phrases by which a refusal of the schema is recognized, in addition to those common to all servers.
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

/// Returns the class of an error that is not determined by its status alone, with advice on what to do.
fn special(request: &RequestInfo, status: StatusCode, message: &str) -> Option<(FaultKind, String)> {
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    let found = |kind: FaultKind, advice: &str| Some((kind, advice.to_owned()));
    match status.as_u16() {
        404 if message.contains("model") => {
            let advice = format!("the model `{}` does not exist for this key", request.model);
            Some((FaultKind::Unsupported, advice))
        }
        404 | 405 => {
            let advice = "the server has no Messages API at this address, check the base URL (it ends before `/v1/messages`)";
            found(FaultKind::Unsupported, advice)
        }
        413 => found(FaultKind::BadRequest, "the request is too large, send less"),
        400 | 422 if says(&["credit balance is too low", "usage limits", "billing"]) => {
            found(FaultKind::NoCredit, "the account has no credit left")
        }
        400 if says(&["prompt is too long", "exceed context limit", "context window"]) => {
            let advice = "prompt and completion exceed the model's context window, shorten the input or lower `max_tokens`";
            found(FaultKind::BadRequest, advice)
        }
        400 if says(&["maximum allowed number of output tokens"]) => found(
            FaultKind::BadRequest,
            "the call asks for more tokens than the model's output limit, set a smaller `max_tokens`",
        ),
        400 if says(&["`temperature`", "temperature is", "`top_p`"]) => {
            let advice = "the model does not support these sampling parameters, leave them out or set `temperature = false`";
            found(FaultKind::BadRequest, advice)
        }
        400 if says(&["thinking"]) => {
            found(FaultKind::BadRequest, "the model does not support the configured `thinking`")
        }
        400 if says(&["effort"]) => {
            found(FaultKind::BadRequest, "the model does not support the configured `effort`")
        }
        400 | 422 if request.has_schema && says(SCHEMA_WORDS) => {
            found(FaultKind::SchemaRefused, "the server refused the schema")
        }
        _ => None,
    }
}
