//! Rules of the ledger, each over generated or tabled cases.

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
