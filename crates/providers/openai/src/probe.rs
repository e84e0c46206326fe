//! Checks that the server is reachable and accepts the key.

use formwork_core::{Capabilities, Fault};
use formwork_wire::http::{Method, Request, StatusCode};
use formwork_wire::{Bytes, RequestInfo, Transport, bad_request};
use serde_json::Value;

use crate::OpenAi;

/// The maximum size of the list of models in bytes. Routers list thousands of models.
const LIST_BYTES: usize = 16 * 1024 * 1024;

/// The maximum number of bytes that are read of an error response.
const ERROR_BYTES: usize = 64 * 1024;

/// Requests the list of models. A server without the endpoint counts as reachable. A model that is missing from the list is no
/// error, because it may be listed under another name.
pub(crate) async fn probe(wire: &OpenAi, transport: &dyn Transport) -> Result<Capabilities, Fault> {
    let request = Request::builder().method(Method::GET).uri(wire.path("/models")).body(Bytes::new());
    let request = request.map_err(|error| bad_request(format!("the request cannot be written: {error}")))?;
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
    let (protocol, model) = (wire.api.protocol(), wire.model.clone());
    let info = RequestInfo { protocol, model, ..RequestInfo::default() };
    Err(info.fault(&head, &body.beginning(ERROR_BYTES).await, transport.now()))
}

/// Returns the context window in an entry of the list. vLLM, OpenRouter and Groq report it, each in a property of its own.
fn context_tokens(list: &Value, model: &str) -> Option<u32> {
    let entry = list.get("data")?.as_array()?.iter().find(|entry| entry["id"] == model)?;
    let members = ["max_model_len", "context_length", "context_window"].iter();
    members.filter_map(|name| entry.get(name)?.as_u64()).find_map(|tokens| u32::try_from(tokens).ok())
}
