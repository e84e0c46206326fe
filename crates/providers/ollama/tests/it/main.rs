//! Tests of the codec against the observed behaviour of Ollama 0.17.4, without a server.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test may simply fail")]

mod admin;
mod config;
mod decoding;
mod faults;
mod oracle;
mod probe;
mod request;
mod support;
