//! JSON Schema, lowered to what each kind of language model takes.
//!
//! A [`Lower`](formwork_core::Lower) writes a schema in the dialect of a provider and hands out a
//! [`Lowered`](formwork_core::Lowered): what is sent, what the model is shown, how an answer is mapped back, and a
//! receipt of what the dialect cannot say. Judging always uses the original schema.
//!
//! - [`Llguidance`] constrains decoding in process.
//! - [`Prompt`] puts the schema into words.
//! - [`rungs`] picks the dialects of a provider by what it declares.
//!
//! Lowering is *sound*: some answer that the lowered schema allows satisfies the original. That is not a matter of
//! course; schemas that ordinary Rust types make (`#[serde(flatten)]`, tagged enums) come out of the usual converters as
//! schemas that forbid every right answer.
//!
//! To embed it alone see `examples/embed.rs`.

mod caps;
mod containers;
mod expand;
mod flat;
mod form;
mod kinds;
mod llguidance;
mod order;
mod outline;
mod pattern;
mod prompt;
mod rungs;
mod scalars;
mod union;

pub use llguidance::Llguidance;
pub use prompt::Prompt;
pub use rungs::{DIALECTS, dialect, rungs};
