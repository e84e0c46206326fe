//! The service over sockets, in front of scripted servers.

#![expect(clippy::unwrap_used, reason = "a test may simply fail")]

mod bad_input;
mod crowd;
mod dialogues;
mod extract;
mod formats;
mod keys;
mod metering;
mod native;
mod outcomes;
mod page;
mod passing;
mod service;
mod streams;
mod support;
#[cfg(feature = "otlp")]
mod telemetry;
mod tools;
mod translated;
