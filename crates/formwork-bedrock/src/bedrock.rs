use formwork_core::{Capabilities, Enforcement};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The way in which the API is asked to enforce a schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "BedrockMode")]
pub enum Mode {
    /// By the format of the text (`outputConfig.textFormat`).
    #[default]
    Schema,
    /// By a tool that the model is forced to call; the input of the call is the answer.
    Tool,
}

/// The protocol of the Converse API for one model. It knows neither address nor key; the transport does.
///
/// It promises enforced schemas in the dialect `anthropic`, `prompt`, a temperature and `top_p`.
#[derive(Debug, Clone, PartialEq)]
pub struct Bedrock {
    pub(crate) model: String,
    pub(crate) capabilities: Capabilities,
    pub(crate) mode: Mode,
    pub(crate) extra: Map<String, Value>,
}

impl Bedrock {
    /// Returns the protocol for this model: its identifier, that of an inference profile, or an ARN.
    pub fn new(model: impl Into<String>) -> Self {
        let capabilities = Capabilities::new(Enforcement::Schema)
            .with_dialect("anthropic")
            .with_dialect("prompt")
            .with_temperature()
            .with_top_p();
        Self { model: model.into(), capabilities, mode: Mode::default(), extra: Map::new() }
    }

    /// Sets the promises, the dialects included (default: schemas, a temperature and `top_p`).
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Sets how schemas are enforced (default: [`Mode::Schema`]).
    #[must_use]
    pub const fn with_mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Adds members to the body, such as `guardrailConfig` (default: none). They replace members of the same name.
    #[must_use]
    pub fn with_extra(mut self, extra: Map<String, Value>) -> Self {
        self.extra = extra;
        self
    }

    /// Returns the name of the model.
    pub fn model(&self) -> &str {
        &self.model
    }
}
