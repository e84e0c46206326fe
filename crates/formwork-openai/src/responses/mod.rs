//! The Responses API: OpenAI's newer protocol beside Chat Completions, for the same models, keys and errors.

mod document;
mod encode;
mod events;
mod input;
mod reader;
mod shape;

pub(crate) use document::document;
pub(crate) use encode::request;
pub(crate) use events::Events;
pub(crate) use reader::Reader;
