use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One of Ollama's two native APIs.
///
/// ```
/// use formwork_core::{Call, Lowered, Message};
/// use formwork_ollama::{Api, OllamaConfig};
/// use formwork_wire::Wire;
///
/// let call = Call::new(vec![Message::user("Hello.")], Lowered::default());
/// let config = OllamaConfig { api: Api::Generate, ..OllamaConfig::new("qwen3:8b") };
/// assert_eq!(config.wire().encode(&call)?.uri(), "/api/generate");
/// # Ok::<(), formwork_core::Fault>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// `/api/chat`: a list of messages, which the server formats with the model's chat template.
    #[default]
    Chat,
    /// `/api/generate`: a single prompt, for models without a chat template.
    Generate,
}
