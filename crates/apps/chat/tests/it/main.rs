#![expect(clippy::unwrap_used, reason = "a test may simply fail")]
//! The chat client: its contract, its scenes, its tools, and its failures.

mod contract;
mod conversation;
mod failures;
mod scenes;
mod support;
mod tools;
mod typed;
mod validators;
