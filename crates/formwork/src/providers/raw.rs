//! Servers as they are: for requests that are passed on in the server's own protocol.

use formwork_wire::SharedTransport;

use crate::config::{ConfigError, Section};

/// The protocol of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Protocol {
    /// Anthropic's Messages API.
    Anthropic,
    /// Ollama's own API.
    Ollama,
    /// Chat Completions, and embeddings of the same servers.
    OpenAi,
    /// OpenAI's Responses API.
    Responses,
}

/// A server that takes requests in its own protocol, unchanged.
#[derive(Debug, Clone)]
pub struct Raw {
    /// The protocol.
    pub protocol: Protocol,
    /// The transport that the section's calls use, with its address, key, headers and time limits.
    pub transport: SharedTransport,
    /// The model of the section, as the server calls it.
    pub model: String,
}

/// Returns the server of a section as it is; `None` for a model in this process, for kinds of your own, and where the section
/// sets what wraps calls (`concurrency`, `prompt_only`) or where they come from (`cassette`, `record`).
///
/// # Errors
/// [`ConfigError`], if the section cannot be used.
pub fn raw(section: &Section) -> Result<Option<Raw>, ConfigError> {
    let common = &section.common;
    let is_wrapped = common.concurrency.is_some() || common.prompt_only;
    if is_wrapped || common.cassette.is_some() || common.record.is_some() {
        return Ok(None);
    }
    match common.kind.as_str() {
        #[cfg(feature = "anthropic")]
        "anthropic" => super::anthropic::raw(section).map(Some),
        #[cfg(feature = "ollama")]
        "ollama" => super::ollama::raw(section).map(Some),
        #[cfg(feature = "openai")]
        kind if formwork_openai::presets().iter().any(|preset| preset.name == kind) => {
            super::openai::raw(section, kind).map(Some)
        }
        _ => Ok(None),
    }
}
