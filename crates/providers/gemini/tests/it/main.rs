#![expect(clippy::unwrap_used, reason = "a test may simply fail")]
//! Tests of the codec without a network.

mod config;
mod faults;
mod requests;
mod responses;
mod support;
