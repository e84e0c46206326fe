//! The parts of a chaos test: a simulated provider that injects faults and records all calls, and a checker of the results.
//! Neither shares code with the batches under test.

pub(crate) mod batches;
pub(crate) mod checker;
pub(crate) mod files;
mod http;
pub(crate) mod kill;
pub(crate) mod provider;
pub(crate) mod submit;
