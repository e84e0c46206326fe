//! Skills as their users write and run them, with scripted models.

#![expect(clippy::unwrap_used, reason = "a test may simply fail")]

mod examples;
mod files;
mod handlers;
mod running;
mod support;
