use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Capabilities;

/// Promises of a model that differ from those that its provider knows; promises that are left out stay.
///
/// ```
/// use formwork_core::{Capabilities, Enforcement, Overrides};
///
/// let overrides: Overrides = serde_json::from_str(r#"{"seed": false, "output_tokens": 4096}"#)?;
/// let capabilities = overrides.apply(Capabilities::new(Enforcement::Schema).with_temperature().with_seed());
/// assert!(capabilities.temperature && !capabilities.seed);
/// assert_eq!(capabilities.output_tokens, Some(4096));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Overrides {
    /// Whether it takes a temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<bool>,
    /// Whether it takes a nucleus (top-p) threshold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<bool>,
    /// Whether it takes a seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<bool>,
    /// Whether it takes a frequency penalty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<bool>,
    /// Whether it takes system messages after the first user message; otherwise they are merged into the user's. An error for the kind
    /// `gemini`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_system: Option<bool>,
    /// Whether the model continues a last message of the assistant, the opening of a document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefill: Option<bool>,
    /// The maximum number of tokens of prompt and answer together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u32>,
    /// The maximum number of tokens of a prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u32>,
    /// The maximum number of tokens of an answer, reasoning included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u32>,
    /// The token limit of calls without a limit of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_max_tokens: Option<u32>,
}

impl Overrides {
    /// Returns these capabilities with the differences.
    pub fn apply(&self, mut capabilities: Capabilities) -> Capabilities {
        let set = |known: &mut bool, other: Option<bool>| *known = other.unwrap_or(*known);
        set(&mut capabilities.temperature, self.temperature);
        set(&mut capabilities.top_p, self.top_p);
        set(&mut capabilities.seed, self.seed);
        set(&mut capabilities.frequency_penalty, self.frequency_penalty);
        set(&mut capabilities.late_system, self.late_system);
        set(&mut capabilities.prefill, self.prefill);
        capabilities.context_tokens = self.context_tokens.or(capabilities.context_tokens);
        capabilities.input_tokens = self.input_tokens.or(capabilities.input_tokens);
        capabilities.output_tokens = self.output_tokens.or(capabilities.output_tokens);
        capabilities.default_max_tokens = self.default_max_tokens.or(capabilities.default_max_tokens);
        capabilities
    }
}
