//! What chaos is played with: a provider with faults and a record of its own, and a checker of the results. Neither shares code
//! with the batches that they test.

pub(crate) mod checker;
pub(crate) mod kill;
pub(crate) mod provider;
