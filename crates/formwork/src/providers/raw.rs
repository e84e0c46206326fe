//! Access to servers in their own protocol, for requests that are forwarded unchanged.

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

/// A server with a batch API, which processes files of requests within a day.
#[derive(Debug, Clone)]
pub struct BatchServer {
    /// The protocol of the requests.
    pub protocol: Protocol,
    /// The codec of the requests, without streams.
    pub wire: Arc<dyn Wire>,
    /// The transport with the address, key, headers and time limits of the section. The maximum size of a response is 1 GiB.
    pub transport: SharedTransport,
}
