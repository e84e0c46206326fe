//! Tests of the store, of the in-process engine, and of the engine for batch APIs of providers.

#![expect(clippy::unwrap_used, reason = "a test may simply fail")]

mod contract;
mod engine;
mod input;
mod played;
mod provider_batch;
mod store;
mod stored;
mod tables;
