//! The tests that need all kinds of hosted models.

mod completeness;
mod doors;
mod last_events;
mod settings;
mod tool_calls;
