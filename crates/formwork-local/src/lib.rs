//! A GGUF language model in this process, in pure Rust, that decodes under a JSON Schema.
//!
//! [`Local`] is a [`Provider`](formwork_core::Provider): it works offline, without a server and without a compiler for
//! anything but Rust. It runs llama- and qwen2-family models with byte-pair tokenizers from `.gguf` files; the default
//! is SmolLM2-135M-Instruct, which keeps to any schema and knows little.
//!
//! - [`LocalOptions`] says which model, with which context.
//! - [`Store`] keeps model files: it fetches, lists and removes them, and tells a [`Progress`] how far it is.
//!
//! To embed it alone, depend on this crate and on `formwork-core`, and see `examples/embed-local.rs`: one call to
//! [`Local::open`], one [`Call`](formwork_core::Call), one answer.
//!
//! The schema is enforced token by token (with `llguidance`), and there is always a way left to complete the
//! document in the tokens that remain, so that no answer to a schema is ever cut off.
//!
//! All that it brings is Rust, most of it through candle; docs/ARCHITECTURE.md says how many crates that is.
//!
//! # Bounds
//! The token budget is kept while decoding and not in the schema: a value may grow as long as the tokens that are left cover
//! the shortest way to the end of the document. What is still open then is closed without the model, and `closed_at` says
//! from where on.
//!
//! Models of fewer than 500 million parameters repeat themselves without end where a schema lets them. They are written
//! under [`Restraint::TinyModel`], which ends such strings, lists and numbers earlier; [`LocalOptions::with_restraint`]
//! switches it on and off.
//!
//! # Rules
//! A [`Rule`](formwork_core::Rule) of a call is kept while decoding: once the values that it computes from are written,
//! the rest of the document is held to a schema with its range in it. So a weighted sum cannot be wrong, as long as the
//! answer has room for it.
//!
//! # Threads
//! Matrix products run on candle's thread pool, of which a process has one. `CANDLE_NUM_THREADS` says how many threads it
//! has; without it there is one for each physical core. They spin while they wait for each other, so on a machine that
//! does anything else one thread is faster: a program calls [`settle_threads`] first. The number changes no answer.

mod decode;
mod engine;
mod error;
mod local;
mod model;
mod options;
mod template;
mod threads;
mod timing;
mod vocabulary;
mod weights;
mod worker;

pub use error::LocalError;
pub use local::Local;
pub use options::{LocalOptions, Restraint};
pub use threads::settle_threads;
pub use timing::{Step, Timing};
pub use weights::{Cached, Hub, HubFile, KNOWN, Known, Progress, Store};
