//! The Responses API: OpenAI's newer protocol beside Chat Completions, for the same models, keys and errors.

mod encode;
mod input;
mod reader;
mod shape;

pub(crate) use encode::request;
pub(crate) use reader::ResponsesReader;
