//! Servers as they are: for requests that are passed on in the server's own protocol.

use std::sync::Arc;

use formwork_wire::{SharedTransport, Wire};

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

/// A server with a batch API: files of requests that it answers within a day.
#[derive(Debug, Clone)]
pub struct BatchServer {
    /// The protocol of the requests.
    pub protocol: Protocol,
    /// The codec of the requests, which asks for no streams.
    pub wire: Arc<dyn Wire>,
    /// The transport, with the address, key, headers and time limits of the section. A response may have 1 GiB.
    pub transport: SharedTransport,
}
