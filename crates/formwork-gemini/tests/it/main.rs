#![expect(clippy::unwrap_used, reason = "a test may simply fail")]
//! The protocol: what is sent, and what is made of all that servers answer.

mod config;
mod faults;
mod requests;
mod responses;
mod support;
