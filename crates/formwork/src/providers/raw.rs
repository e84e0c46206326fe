//! Servers as they are: for requests that are passed on in the server's own protocol.

use formwork_wire::SharedTransport;

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
