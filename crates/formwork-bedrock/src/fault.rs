//! Classification of the API's errors.

use formwork_core::{Call, Enforcement, Fault, FaultKind, Time};
use formwork_wire::http::response::Parts;
use formwork_wire::{error_in, fault_of};

use crate::Bedrock;

/// Phrases by which a refusal of the schema is recognized, in addition to those common to all servers.
const SCHEMA_WORDS: &[&str] = &[
    "schema",
    "outputconfig",
    "output_config",
    "textformat",
    "structured output",
    "toolconfig",
    "tool_choice",
    "toolchoice",
    "tool use",
];

/// Returns the fault for a response with an error status.
pub(crate) fn of_response(wire: &Bedrock, call: &Call, head: &Parts, body: &[u8], now: Time) -> Fault {
    let has_schema = matches!(call.enforcement(), Enforcement::Schema | Enforcement::Tool);
    let mut fault = fault_of(head, body, has_schema, now);
    let document = serde_json::from_slice(body).unwrap_or_default();
    let message = error_in(&document).unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
    let message = message.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    let found = match head.status.as_u16() {
        400 | 404 if says(&["model identifier is invalid", "end of its life", "on-demand throughput"]) => {
            let advice = format!("the model `{}` cannot be called in this region", wire.model);
            Some((FaultKind::Unsupported, advice))
        }
        // 424 is `ModelErrorException`: the model failed while it processed the request.
        424 => Some((FaultKind::Overloaded, String::new())),
        400 if says(&["too long", "too many input tokens", "context"]) => Some((
            FaultKind::BadRequest,
            "prompt and completion exceed the model's context window, shorten the input".to_owned(),
        )),
        400 | 422 if has_schema && says(SCHEMA_WORDS) => {
            Some((FaultKind::SchemaRefused, "the server refused the schema".to_owned()))
        }
        _ => None,
    };
    if let Some((kind, advice)) = found {
        fault.kind = kind;
        if !advice.is_empty() {
            fault.message = format!("{advice}: {}", fault.message);
        }
    }
    fault
}
