use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Message;

/// The request of a client in the form of a protocol, for services. A wire of that protocol sends the members that the client set,
/// and the call decides the model, the schema, the limits, the sampling and what is added to the dialogue. Other providers send the
/// call alone.
///
/// ```
/// use std::sync::Arc;
///
/// use formwork_core::{ClientRequest, Input};
///
/// let body = serde_json::json!({"messages": [{"role": "user", "content": "Maria, 34"}], "logprobs": true});
/// let input = Input::from("Maria, 34").with_client(Arc::new(ClientRequest::new("/chat/completions", body)));
/// assert!(input.client.is_some_and(|client| client.before.is_empty()));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClientRequest {
    /// The path of the protocol relative to the base URL, as requests of its wire have it: `/chat/completions`.
    pub path: String,
    /// The body of the request.
    pub body: Arc<Value>,
    /// Whether the call alone does not say the request, so that other providers have to refuse it (default: `false`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_only: bool,
    /// The headers that the protocol has beside the body (default: none).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// The messages that stand before the dialogue of the body: instructions and examples (default: none).
    pub before: Vec<Arc<Message>>,
}

impl ClientRequest {
    /// Creates a request without messages before its dialogue.
    pub fn new(path: impl Into<String>, body: Value) -> Self {
        Self {
            path: path.into(),
            body: Arc::new(body),
            is_only: false,
            headers: Vec::new(),
            before: Vec::new(),
        }
    }
}
