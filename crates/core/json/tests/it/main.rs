//! Guarantees for readers of text, as examples and as properties.

mod lexer;
mod reading;
mod rounded;
mod support;
mod untrusted;
