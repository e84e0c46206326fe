//! The facade with configuration files.
#![expect(clippy::unwrap_used, reason = "a test may simply fail")]

mod bad_config;
#[cfg(feature = "anthropic")]
mod caching;
#[cfg(all(
    feature = "anthropic",
    feature = "bedrock",
    feature = "cohere",
    feature = "gemini",
    feature = "ollama",
    feature = "openai"
))]
mod completeness;
mod config;
mod connections;
#[cfg(all(
    feature = "anthropic",
    feature = "bedrock",
    feature = "cohere",
    feature = "gemini",
    feature = "ollama",
    feature = "openai"
))]
mod doors;
#[cfg(feature = "golden")]
mod golden;
#[cfg(all(
    feature = "anthropic",
    feature = "bedrock",
    feature = "cohere",
    feature = "gemini",
    feature = "ollama",
    feature = "openai"
))]
mod last_events;
mod limits;
#[cfg(feature = "anthropic")]
mod prefill;
mod probes;
mod promises;
#[cfg(all(
    feature = "anthropic",
    feature = "bedrock",
    feature = "cohere",
    feature = "gemini",
    feature = "ollama",
    feature = "openai"
))]
mod settings;
mod swap;
#[cfg(all(
    feature = "anthropic",
    feature = "bedrock",
    feature = "cohere",
    feature = "gemini",
    feature = "ollama",
    feature = "openai"
))]
mod tool_calls;
