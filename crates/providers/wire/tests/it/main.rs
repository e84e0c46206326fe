//! Tests of the public interface.
#![expect(clippy::unwrap_used, reason = "a test may simply fail")]

mod cassettes;
mod encoding;
mod faults;
mod framing;
mod lenient;
mod provider;
mod toy;
