//! The layers from outside, on a clock that tokio holds still.
#![expect(clippy::unwrap_used, reason = "a test may simply fail")]

mod concurrency;
mod rate;
mod slow;
mod timeout;
mod tokens;
mod trace;
