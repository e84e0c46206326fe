//! Guarantees for callers and drivers.

#![expect(clippy::unwrap_used, reason = "a test may simply fail")]

mod bounds;
mod closed;
mod completeness;
mod confidence;
mod context;
mod decisions;
mod health;
mod laws;
mod machine;
mod money;
mod next_steps;
mod observations;
mod policies;
mod readings;
mod running_away;
mod support;
mod unpatchable;
mod warnings;
mod watch;
