use formwork_core::{Call, Enforcement, Usage};

use crate::pattern;

/// The facts of a call that are needed to decode its response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestInfo {
    pub(crate) model: String,
    /// Whether `format` was sent, a schema or `"json"`.
    pub(crate) has_format: bool,
    /// Whether the schema has a `pattern`.
    pub(crate) has_pattern: bool,
    pub(crate) max_tokens: Option<u32>,
    /// The estimated tokens of the prompt.
    pub(crate) input_tokens: u64,
}

impl RequestInfo {
    pub(crate) fn new(model: &str, call: &Call) -> Self {
        Self {
            model: model.to_owned(),
            has_format: matches!(call.enforcement(), Enforcement::Schema | Enforcement::JsonObject),
            has_pattern: pattern::has_pattern(&call.lowered),
            max_tokens: call.max_tokens,
            input_tokens: Usage::estimate(call, 0).input_tokens,
        }
    }

    /// Returns the facts for requests that are not calls.
    pub(crate) fn nothing(model: &str) -> Self {
        Self {
            model: model.to_owned(),
            has_format: false,
            has_pattern: false,
            max_tokens: None,
            input_tokens: 0,
        }
    }
}
