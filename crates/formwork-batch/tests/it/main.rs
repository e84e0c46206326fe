//! Tests of batches, on the store and the engine in this process.

mod store;
