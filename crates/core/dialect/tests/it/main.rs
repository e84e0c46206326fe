#![expect(clippy::unwrap_used, reason = "a test may simply fail")]
//! The dialects against llguidance itself.

mod dialects;
mod gemini;
mod laws;
mod lifting;
mod lint;
mod model;
mod prices;
mod probes;
mod reading;
mod tightening;
