//! The parts of a chaos test: a simulated provider that injects faults and records all calls, and a checker of the results.
//! Neither shares code with the batches under test.

pub(crate) mod answers;
pub(crate) mod batches;
pub(crate) mod checker;
pub(crate) mod files;
mod http;
pub(crate) mod invoice;
pub(crate) mod kill;
pub(crate) mod process;
pub(crate) mod provider;
mod record;
pub(crate) mod submit;
