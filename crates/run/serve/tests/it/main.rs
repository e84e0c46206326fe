//! Connections over TLS.

#![expect(clippy::unwrap_used, reason = "a test may simply fail")]

mod tls;
