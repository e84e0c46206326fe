//! What readers of text rely on, as examples and as properties.

mod incremental;
mod reading;
mod support;
mod untrusted;
