//! The crate from outside: tiny models for laws that hold with any weights, and the real default model.

#![expect(clippy::unwrap_used, reason = "a test may simply fail")]

mod budget;
mod calls;
mod damage;
mod decoding;
mod restraint;
mod serving;
mod smollm2;
mod tiny;
