//! The facade with configuration files.
#![expect(clippy::unwrap_used, reason = "a test may simply fail")]

mod bad_config;
#[cfg(feature = "anthropic")]
mod caching;
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
mod every_kind;
#[cfg(feature = "golden")]
mod golden;
mod limits;
#[cfg(feature = "anthropic")]
mod one_line;
mod prefill;
mod probes;
mod promises;
mod swap;
