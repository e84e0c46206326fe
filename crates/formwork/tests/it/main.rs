//! The facade from outside: a configuration file decides who is asked.
#![expect(clippy::unwrap_used, reason = "a test may simply fail")]

mod bad_config;
mod config;
mod connections;
#[cfg(feature = "golden")]
mod golden;
mod limits;
mod promises;
mod swap;
