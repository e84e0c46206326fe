//! Access to servers in their own protocol, for requests that are forwarded unchanged.

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

/// A server to which requests are forwarded unchanged, in its own protocol.
#[derive(Debug, Clone)]
pub struct Raw {
    /// The protocol.
    pub protocol: Protocol,
    /// The transport that the section's calls use, with its address, key, headers and time limits.
    pub transport: SharedTransport,
    /// The server's name of the section's model.
    pub model: String,
}
