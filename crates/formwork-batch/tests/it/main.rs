//! Tests of batches, on the store and the engine in this process.

#![expect(clippy::unwrap_used, reason = "a test may simply fail")]

mod engine;
mod input;
mod store;
