//! Rules of the ledger, each tested with generated cases or a table of cases.

#![expect(clippy::unwrap_used, reason = "a test may simply fail")]

mod cache;
mod file;
mod given;
mod keys;
mod kill;
mod query;
mod redaction;
mod rollups;
mod shedding;
mod spending;
mod usd;
