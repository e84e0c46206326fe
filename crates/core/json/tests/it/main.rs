//! Guarantees for readers of text, as examples and as properties.

mod lexer;
mod reading;
mod support;
mod untrusted;
