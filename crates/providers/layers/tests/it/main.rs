//! Tests of the public interface with tokio's paused clock.
#![expect(clippy::unwrap_used, reason = "a test may simply fail")]

mod concurrency;
mod rate;
mod slow;
mod stages;
mod timeout;
mod tokens;
mod trace;
