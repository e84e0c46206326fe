//! Tests of batches, on the store, the engine in this process and the engine for the batch APIs of providers.

#![expect(clippy::unwrap_used, reason = "a test may simply fail")]

mod engine;
mod input;
mod played;
mod provider_batch;
mod store;
