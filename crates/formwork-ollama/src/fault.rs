//! The meaning of Ollama's errors.

use formwork_core::{Fault, FaultKind, Time};
use formwork_wire::http::response::Parts;
use formwork_wire::http::{Response, StatusCode};
use formwork_wire::{error_in, fault_of, is_closed_early, quoted};

use serde_json::Value;

use crate::request_info::RequestInfo;

/// Returns the fault for a response with an error status.
pub(crate) fn of_response(request: &RequestInfo, head: &Parts, body: &[u8], now: Time) -> Fault {
    let fault = fault_of(head, body, request.has_format, now);
    explained(request, fault, &words(body))
}

/// Returns the fault for a line with an error, in a response that began successfully. Once the model has sent text, the server
/// has accepted the schema, so the error is not a refusal of it.
pub(crate) fn in_stream(request: &RequestInfo, line: &str, after_text: bool) -> Fault {
    let request = RequestInfo {
        has_format: request.has_format && !after_text,
        has_pattern: request.has_pattern && !after_text,
        ..request.clone()
    };
    let mut head = Response::new(());
    *head.status_mut() = status_in(line).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let message = words(line.as_bytes());
    // The error came too late for a status; its class is that of the same message with its own status.
    let Fault { kind, .. } = fault_of(&head.into_parts().0, line.as_bytes(), request.has_format, Time(0));
    explained(
        &request,
        Fault::new(kind, format!("the server ended the response with an error: {}", quoted(&message))),
        &message,
    )
}

/// Returns the fault for a call without a response. A server that a pattern crashes closes the connection (0.17.4).
pub(crate) fn of_transport(request: &RequestInfo, mut fault: Fault) -> Fault {
    if request.has_pattern && is_closed_early(&fault) {
        fault.kind = FaultKind::SchemaRefused;
        fault.message.push_str("; the schema has a `pattern`, and some patterns crash Ollama servers");
    }
    fault
}

/// Returns the status that the message of a line names.
fn status_in(line: &str) -> Option<StatusCode> {
    let document: Value = serde_json::from_str(line).ok()?;
    let status = u16::try_from(document.get("status")?.as_u64()?).ok()?;
    StatusCode::from_u16(status).ok().filter(|status| !status.is_success())
}

/// Returns the message of an error body.
fn words(body: &[u8]) -> String {
    let document = serde_json::from_slice(body).ok();
    document.as_ref().and_then(error_in).unwrap_or_else(|| String::from_utf8_lossy(body).into_owned())
}

/// Returns the fault with the class of Ollama's error message, and with advice.
fn explained(request: &RequestInfo, mut fault: Fault, message: &str) -> Fault {
    let message = message.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    let failed = fault.kind == FaultKind::Overloaded;
    let mut is = |kind: FaultKind, hint: &str| {
        fault.kind = kind;
        fault.message.push_str(hint);
    };
    let of_format = [
        "invalid format",
        "invalid json schema",
        "does not support structured outputs",
        // Before 0.5 the format was a string.
        "request.format of type string",
    ];
    if request.has_format && says(&of_format) {
        is(FaultKind::SchemaRefused, "");
    } else if message.contains("model") && says(&["not found", "try pulling it first"]) {
        is(FaultKind::Unsupported, &format!("; fetch it with `ollama pull {}`", request.model));
    } else if says(&["does not support thinking"]) {
        is(FaultKind::Unsupported, "; remove `think` for this model");
    } else if says(&["does not support chat"]) {
        is(FaultKind::Unsupported, "; use the generate API for this model");
    } else if says(&["does not support"]) {
        is(FaultKind::Unsupported, "");
    } else if says(&["context length", "available context size"]) {
        let hint = "; increase `num_ctx` up to the model's context window, or shorten the input";
        is(FaultKind::BadRequest, hint);
    } else if says(&["server busy", "maximum pending requests"]) {
        is(FaultKind::Overloaded, "");
    } else if says(&["requires more system memory"]) {
        is(FaultKind::Overloaded, "; a smaller `num_ctx` or model needs less memory");
    } else if request.has_pattern && failed && says(&["eof", "connection reset"]) {
        // Newer versions run the model in a separate process, which crashes instead of the server.
        is(
            FaultKind::SchemaRefused,
            "; the schema has a `pattern`, which may have crashed the model's process",
        );
    }
    fault
}
