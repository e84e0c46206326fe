//! What callers and drivers rely on.

#![expect(clippy::unwrap_used, reason = "a test may simply fail")]

mod closed;
mod laws;
mod lessons;
mod machine;
mod policies;
mod support;
