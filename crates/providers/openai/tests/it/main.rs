#![expect(clippy::unwrap_used, reason = "a test may simply fail")]
//! Tests of the codec without a network.

mod config;
mod faults;
mod line_breaks;
mod oracle;
mod probe;
mod requests;
mod responses;
mod responses_api;
mod streams;
mod support;
