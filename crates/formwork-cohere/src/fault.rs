//! Classification of the API's errors.

use formwork_core::{Call, Enforcement, Fault, FaultKind, Time};
use formwork_wire::http::response::Parts;
use formwork_wire::{error_in, fault_of};

use crate::Cohere;

/// Phrases by which a refusal of the schema is recognized, in addition to those common to all servers.
const SCHEMA_WORDS: &[&str] = &["schema", "response_format", "json_object", "tool"];

/// Returns the fault for a response with an error status.
pub(crate) fn of_response(wire: &Cohere, call: &Call, head: &Parts, body: &[u8], now: Time) -> Fault {
    let has_schema = matches!(call.enforcement(), Enforcement::Schema | Enforcement::Tool);
    let mut fault = fault_of(head, body, has_schema, now);
    let document = serde_json::from_slice(body).unwrap_or_default();
    let message = error_in(&document).unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
    let message = message.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    let found = match head.status.as_u16() {
        404 if says(&["model"]) => {
            Some((FaultKind::Unsupported, format!("the model `{}` does not exist for this key", wire.model)))
        }
        // Cohere sends 498 for an invalid token.
        498 => Some((FaultKind::Auth, "the server refused the API key".to_owned())),
        // A trial key has a number of calls per month.
        429 if says(&["trial key", "calls / month"]) => {
            Some((FaultKind::NoCredit, "the key has no calls left".to_owned()))
        }
        400 if says(&["too many tokens", "context"]) => Some((
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
        fault.message = format!("{advice}: {}", fault.message);
    }
    fault
}
