//! A GGUF language model in this process, in pure Rust, whose answers satisfy a JSON Schema.
//!
//! [`Local`] is a [`Provider`](formwork_core::Provider) that works offline, without a server and without a C compiler.
//! It runs models of the llama and qwen2 families with byte-pair tokenizers from `.gguf` files. The default is
//! SmolLM2-135M-Instruct, which follows every schema and knows little.
//!
//! - [`LocalOptions`] sets the model, its context and its restraint.
//! - [`Store`] fetches, lists and removes model files, and reports to a [`Progress`].
//!
//! To embed it alone, depend on this crate and `formwork-core`; see `examples/embed-local.rs`: one call of
//! [`Local::open`], one [`Call`](formwork_core::Call), one answer.
//!
//! The schema is enforced token by token (with `llguidance`). At every token the rest of the token budget is enough to
//! complete the document, so no answer to a schema is ever truncated.
//!
//! All dependencies are Rust, most of them through candle; docs/ARCHITECTURE.md has their number.
//!
//! # Bounds
//! The decoder enforces the token budget, not the schema: a value can grow while the remaining tokens cover the
//! shortest end of the document. Then the decoder completes the document without the model, and `closed_at` is the byte
//! at which it took over.
//!
//! Models with fewer than 500 million parameters tend to repeat themselves without end if the schema allows it. Their
//! answers have the restraint [`Restraint::TinyModel`], which ends such strings, lists and numbers earlier.
//! [`LocalOptions::with_restraint`] changes it.
//!
//! # Rules
//! A [`Rule`](formwork_core::Rule) of a call is enforced while decoding: as soon as its inputs are written, the schema
//! of the rest of the document gets the rule's range. A weighted sum, for example, cannot be wrong unless the token
//! budget is too small.
//!
//! # Threads
//! Matrix products run on candle's thread pool, of which a process has one. `CANDLE_NUM_THREADS` is the number of its
//! threads (default: one per physical core). The threads spin while they wait, so on a machine with other work a single
//! thread is faster: call [`settle_threads`] first. The number of threads changes no answer.

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
