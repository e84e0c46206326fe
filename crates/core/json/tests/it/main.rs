//! Guarantees for readers of text, as examples and as properties.

mod incremental;
mod reading;
mod rounded;
mod support;
mod untrusted;
