use formwork_core::{Capabilities, Enforcement};
use serde_json::{Map, Value};

/// The protocol of the chat API for one model. It knows neither address nor key; the transport does.
///
/// It promises enforced schemas in the dialect `cohere`, `json-object`, `prompt`, a temperature, `top_p` and a seed.
#[derive(Debug, Clone, PartialEq)]
pub struct Cohere {
    pub(crate) model: String,
    pub(crate) capabilities: Capabilities,
    pub(crate) extra: Map<String, Value>,
}

impl Cohere {
    /// Returns the protocol for this model, such as `command-a-03-2025`.
    pub fn new(model: impl Into<String>) -> Self {
        let capabilities = Capabilities::new(Enforcement::Schema)
            .with_dialect("cohere")
            .with_dialect("json-object")
            .with_dialect("prompt")
            .with_temperature()
            .with_top_p()
            .with_seed();
        Self { model: model.into(), capabilities, extra: Map::new() }
    }

    /// Sets the promises, the dialects included (default: schemas and all sampling).
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Adds members to the body, such as `safety_mode` (default: none). They replace members of the same name.
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
