//! Scores, gates, and the comparison with a baseline.

#![expect(clippy::unwrap_used, reason = "a test may simply fail")]

mod profiles;
mod reports;
