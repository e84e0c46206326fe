//! Reviewing, comparing and generating, with scripted models and servers.

#![expect(clippy::unwrap_used, reason = "a test may simply fail")]

mod compare;
mod generate;
mod reviewing;
mod rubrics;
mod support;
mod votes;
mod wire;
