//! Tests of the codec without a network.

#![expect(clippy::unwrap_used, reason = "a test may simply fail")]

mod config;
mod faults;
mod requests;
mod responses;
mod support;
