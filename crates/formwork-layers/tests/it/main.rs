//! The layers from outside, with tokio's clock paused.
#![expect(clippy::unwrap_used, reason = "a test may simply fail")]

mod concurrency;
mod rate;
mod slow;
mod timeout;
mod tokens;
mod trace;
