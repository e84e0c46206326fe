//! The results of requests about a server and a model.

use formwork_core::{Capabilities, Enforcement, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The result of [`Ollama::examine`](crate::Ollama::examine): facts about the server and the model. `None`: the server does not report the fact.
///
/// ```
/// use formwork_core::Fault;
/// use formwork_ollama::Ollama;
/// use formwork_wire::Transport;
///
/// async fn probed(wire: Ollama, transport: &dyn Transport) -> Result<Ollama, Fault> {
///     let probed = wire.examine(transport).await?;
///     probed.notes.iter().for_each(|note| println!("{note}"));
///     Ok(wire.with_probed(&probed))
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Probed {
    /// The server's version: `0.17.4`.
    pub version: Option<String>,
    /// The model's family: `llama`.
    pub family: Option<String>,
    /// The format of the model's file: `gguf`, `safetensors`.
    pub format: Option<String>,
    /// The number of parameters as text: `134.52M`.
    pub parameters: Option<String>,
    /// The quantization: `Q4_K_M`.
    pub quantization: Option<String>,
    /// The model's context window: the maximum number of tokens of prompt and completion together.
    pub context_tokens: Option<u32>,
    /// Whether the model can reason before it answers.
    pub thinks: bool,
    /// Whether the model reasons by default and schemas were enforced only with `think: false`.
    pub better_without_thinking: bool,
    /// Whether the model supports tools.
    pub tools: bool,
    /// The strictest enforcement that the probe confirmed.
    pub enforced: Enforcement,
    /// Notes for people: capabilities that do not work, and facts that the probe could not determine.
    pub notes: Vec<String>,
    /// The tokens of the probe's own calls.
    pub usage: Usage,
    /// The capabilities that the probe confirmed.
    pub capabilities: Capabilities,
}

/// The identity of a server and a model. Observations about them remain valid as long as it does not change.
///
/// ```
/// use formwork_core::Fault;
/// use formwork_ollama::Ollama;
/// use formwork_wire::Transport;
///
/// async fn key(wire: &Ollama, transport: &dyn Transport) -> Result<Option<String>, Fault> {
///     let identity = wire.identity(transport).await?;
///     Ok(identity.map(|found| format!("{} {}", found.version, found.digest)))
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// The server's version: `0.17.4`.
    pub version: String,
    /// The digest of the model's manifest.
    pub digest: String,
}
