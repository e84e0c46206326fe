//! JSON Schema, lowered to what each kind of language model takes.
//!
//! A [`Lower`](formwork_core::Lower) writes a schema in the dialect of a provider and hands out a
//! [`Lowered`](formwork_core::Lowered): what is sent, what the model is shown, how an answer is mapped back, and a
//! lowering report of what the dialect cannot say. Judging always uses the original schema.
//!
//! - [`Native`] is a dialect that is enforced: of hosted providers (OpenAI, Azure, Anthropic, Gemini, Mistral,
//!   Groq, xAI, Cohere) and of engines (llama.cpp, Ollama, xgrammar, llguidance).
//! - [`JsonObject`] is for providers that enforce some JSON object.
//! - [`Prompt`] puts the schema into words.
//! - [`Silent`] is any of them for a prompt that shows the schema in words of its own.
//! - [`modes`] picks the dialects of a provider by what it declares.
//! - [`registry`] says what is known of a model by its name.
//! - [`lint`] says what a dialect would make of a schema as it stands.
//! - [`Dialects`] is the table of all dialects by name; a dialect of your own is one file, as data ([`profile`]) or as a
//!   type ([`Dialect`]), and one line, [`Dialects::with`].
//!
//! Lowering is *sound*: some answer that the lowered schema allows satisfies the original. That is not a matter of
//! course; schemas that ordinary Rust types make (`#[serde(flatten)]`, tagged enums) come out of the usual converters as
//! schemas that forbid every right answer.
//!
//! To embed it alone see `examples/embed-dialect.rs`.

mod anthropic;
mod azure;
mod cohere;
mod depth;
mod dialects;
mod expand;
mod form;
mod gemini;
mod groq;
mod json_object;
mod limits;
mod lint;
mod lower_value;
mod mistral;
mod modes;
mod native;
mod order;
mod outline;
mod pattern;
mod place;
mod plain;
pub mod profile;
mod prompt;
pub mod registry;
mod reshape;
mod silent;
mod tighten;
mod write;
mod xai;
mod xgrammar;

pub use dialects::{Dialect, Dialects};
pub use json_object::JsonObject;
pub use lint::{LintFinding, Verdict, lint};
pub use lower_value::lower_value;
pub use modes::{dialect, modes};
pub use native::Native;
pub use prompt::Prompt;
pub use silent::Silent;
