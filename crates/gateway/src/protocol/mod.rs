//! The protocols: pure translation of requests into an `Ask`, and of replies and problems back.

mod anthropic;
mod base;
pub(crate) mod events;
pub(crate) mod fields;
pub(crate) mod given;
mod ignored;
mod ollama;
mod openai;
mod parts;
mod responses;
#[cfg(test)]
mod tests;
pub(crate) mod turn;

pub(crate) use anthropic::ANTHROPIC;
pub(crate) use base::{EVENTS, Frames, LINES, Protocol, written};
pub(crate) use ollama::{OLLAMA, OLLAMA_GENERATE, timestamp};
pub(crate) use openai::OPENAI;
pub(crate) use responses::{KEPT_BY_VENDOR, RESPONSES};
