#![expect(clippy::unwrap_used, reason = "a test may simply fail")]
//! The protocol: what is sent, and what is made of all that servers answer.

mod config;
mod faults;
mod probe;
mod requests;
mod responses;
mod responses_api;
mod streams;
mod support;
