//! The oracle with scripted models.

#![expect(clippy::unwrap_used, reason = "a test may simply fail")]

mod examples;
mod explorer;
mod flow;
mod judging;
mod ledger;
mod metrics;
#[cfg(feature = "serve")]
mod service;
mod support;
mod trouble;
mod wallet;
