//! Guarantees for readers of text, as examples and as properties.

mod incremental;
mod reading;
mod support;
mod untrusted;
