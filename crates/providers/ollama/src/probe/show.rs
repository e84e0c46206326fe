//! The response of `/api/show` about a model.

use serde::Deserialize;
use serde_json::{Map, Value};

/// The properties of the response that are used. All of them may be missing.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ModelInfo {
    pub(super) details: Details,
    /// The metadata of the model's file.
    model_info: Map<String, Value>,
    /// `completion`, `thinking`, `tools`, `vision`, …
    capabilities: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Details {
    pub(super) format: Option<String>,
    pub(super) family: Option<String>,
    pub(super) parameter_size: Option<String>,
    pub(super) quantization_level: Option<String>,
    context_length: Option<u32>,
}

impl ModelInfo {
    /// Reads the known members of a document; `null` counts as missing.
    pub(super) fn of(document: Value) -> Self {
        let Value::Object(mut members) = document else { return Self::default() };
        let mut take = |name: &str| members.remove(name).unwrap_or_default();
        Self {
            details: serde_json::from_value(take("details")).unwrap_or_default(),
            model_info: serde_json::from_value(take("model_info")).unwrap_or_default(),
            capabilities: serde_json::from_value(take("capabilities")).unwrap_or_default(),
        }
    }

    pub(super) fn can(&self, capability: &str) -> bool {
        self.capabilities.iter().any(|known| known == capability)
    }

    pub(super) fn thinks(&self) -> bool {
        self.can("thinking")
    }

    /// Returns whether Ollama's runner for the format of this model ignores `format` (by its source, August 2026).
    pub(super) fn ignores_format(&self) -> bool {
        self.details.format.as_deref().is_some_and(|format| matches!(format, "safetensors" | "mlx"))
    }

    /// Returns the context length of the model's training in tokens.
    pub(super) fn context_tokens(&self) -> Option<u32> {
        let of_file = || {
            let architecture = self.model_info.get("general.architecture").and_then(Value::as_str)?;
            let tokens = self.model_info.get(&format!("{architecture}.context_length"))?.as_u64()?;
            u32::try_from(tokens).ok()
        };
        of_file().or(self.details.context_length).filter(|tokens| *tokens > 0)
    }
}
