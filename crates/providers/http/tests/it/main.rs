//! One test for each failure of a network, against servers on this machine.
#![expect(clippy::unwrap_used, reason = "a test may simply fail")]

mod bodies;
mod connecting;
mod download;
#[cfg(feature = "google")]
mod google;
mod joining;
mod keeping;
mod key_sources;
mod keys;
mod limits;
mod proxies;
mod redirects;
mod runtimes;
mod statuses;
mod support;
mod tls;
