//! Tests of batches, on the store and the engine in this process.

mod engine;
mod input;
mod store;
