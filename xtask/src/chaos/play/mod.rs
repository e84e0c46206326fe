//! What chaos is played with: a provider with faults and a record of its own, and a checker of the results. Neither shares code
//! with the batches that they test.

pub(crate) mod batches;
pub(crate) mod checker;
mod files;
mod http;
pub(crate) mod kill;
pub(crate) mod provider;
pub(crate) mod submit;
