//! Whether a server is there, and takes the key.

use formwork_core::{Capabilities, Enforcement, Fault, FaultKind};
use formwork_wire::http::{Method, Request, StatusCode};
use formwork_wire::{Bytes, Transport};
use serde_json::Value;

use crate::OpenAi;
use crate::fault::{RequestInfo, fault};

/// The longest list of models that is read, in bytes: routers list thousands.
const LIST_BYTES: usize = 16 * 1024 * 1024;

/// How much of an error is read, in bytes.
const ERROR_BYTES: usize = 64 * 1024;

/// Asks for the list of models. A server without one is there, too; a model that is not in the list may have another name
/// in it, so that proves nothing.
pub(crate) async fn probe(wire: &OpenAi, transport: &dyn Transport) -> Result<Capabilities, Fault> {
    let request = Request::builder().method(Method::GET).uri(wire.path("/models")?).body(Bytes::new());
    let request = request.map_err(|error| {
        Fault::new(FaultKind::BadRequest, format!("the request cannot be written: {error}"))
    })?;
    let (head, body) = transport.send(request, None).await?.into_parts();
    let mut capabilities = wire.capabilities.clone();
    if head.status.is_success() {
        let list = serde_json::from_slice(&body.collect(LIST_BYTES).await?).unwrap_or(Value::Null);
        capabilities.context_tokens =
            capabilities.context_tokens.or_else(|| context_tokens(&list, &wire.model));
        return Ok(capabilities);
    }
    if matches!(head.status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED) {
        return Ok(capabilities);
    }
    let (api, model, enforcement) = (wire.api, wire.model.clone(), Enforcement::None);
    let asked = RequestInfo { api, model, enforcement, tool: None, input_tokens: 0 };
    Err(fault(&asked, &head, &body.beginning(ERROR_BYTES).await, transport.now()))
}

/// The context of a model, where the list tells it: vLLM, OpenRouter and Groq, each in a member of its own.
fn context_tokens(list: &Value, model: &str) -> Option<u32> {
    let entry = list.get("data")?.as_array()?.iter().find(|entry| entry["id"] == model)?;
    let members = ["max_model_len", "context_length", "context_window"].iter();
    members.filter_map(|name| entry.get(name)?.as_u64()).find_map(|tokens| u32::try_from(tokens).ok())
}
