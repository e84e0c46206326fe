use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A model's turn with tool calls in the form of the provider's API, with data that only the provider can read: signed thoughts of
/// Claude, thought signatures of Gemini.
///
/// These APIs require the turn back as they sent it, before the results of its calls. A provider with another API ignores it and
/// sends the other parts of the message.
///
/// ```
/// use formwork_core::{Message, Original, Part, Role};
/// use serde_json::json;
///
/// let call = json!({"functionCall": {"name": "weather", "args": {"city": "Lisbon"}}, "thoughtSignature": "c2ln"});
/// let original = Original::new("gemini", json!([call]), [""]);
/// let message = Message { role: Role::Assistant, parts: vec![Part::Original(original)] };
/// assert_eq!(serde_json::to_value(&message).unwrap()["parts"][0]["content"][0], call);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Original {
    /// The name of the API, for example `anthropic` or `gemini`.
    pub api: String,
    /// The content of the turn, for this API alone.
    pub content: Value,
    /// The identifiers of the tool calls in `content`, in order; an identifier is empty if the API has none.
    pub call_ids: Vec<String>,
}

impl Original {
    /// Creates the turn of an API from its content and the identifiers of its tool calls.
    pub fn new(
        api: impl Into<String>,
        content: Value,
        call_ids: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Self { api: api.into(), content, call_ids: call_ids.into_iter().map(Into::into).collect() }
    }

    /// Returns the blocks of the turn if it is of this API.
    pub fn blocks_of(&self, api: &str) -> Option<&[Value]> {
        self.content.as_array().map(Vec::as_slice).filter(|_| self.api == api)
    }
}
