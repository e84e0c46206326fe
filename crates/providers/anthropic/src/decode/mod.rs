//! Decodes responses into deltas.

mod reader;
mod shape;

pub(crate) use reader::MessageReader;
