//! The facade with configuration files.
#![expect(clippy::unwrap_used, reason = "a test may simply fail")]

mod bad_config;
mod config;
mod connections;
#[cfg(feature = "golden")]
mod golden;
mod limits;
mod probes;
mod promises;
mod swap;
