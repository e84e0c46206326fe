//! Requests typed, schema-valid JSON from language models: async, blocking and streaming.
//!
//! - [`Extractor`] extracts values of one type from texts. Build it once and use it for any number of inputs.
//! - [`Backend`] is a provider with its output modes, price and name, as an extractor uses it.
//! - [`Driver`] carries out the steps of a [`Run`](formwork_core::Run), for a [`Plan`](formwork_core::Plan) of your own.
//! - [`Updates`] is a run as a stream of text, partial documents, calls and the outcome.
//! - [`Observer`] receives the events of runs. [`AsyncValidator`] checks values asynchronously, and [`Fallback`] supplies
//!   a value when no model does.
//! - [`Budget`] limits the cost of several runs together, and [`CancellationToken`] ends runs.
//! - [`ObservationStore`] keeps what runs learn about their targets, for example that one rejects a schema.
//!
//! All drivers use the same state machine, so they return the same result. The time comes from a
//! [`Clock`](formwork_core::Clock) (default: [`TokioClock`]). A call that is not complete at the deadline is dropped.
//!
//! ```
//! use std::sync::Arc;
//!
//! use formwork_extract::Extractor;
//! use formwork_testkit::Scripted;
//! use serde_json::json;
//!
//! // The second attempt corrects the type of `age`.
//! let model = Scripted::new([r#"{"age": "old"}"#, r#"{"age": 34}"#]);
//! let schema = json!({"properties": {"age": {"type": "integer"}}, "required": ["age"]});
//! let extractor = Extractor::for_document("person", schema).with_target(Arc::new(model)).build()?;
//! let outcome = extractor.extract_blocking("Maria Lindqvist, 34, moved to Lisbon.")?;
//! assert_eq!((outcome.value, outcome.calls.len()), (json!({"age": 34}), 2));
//! # Ok::<(), formwork_core::Error>(())
//! ```
//!
//! # Traces
//! Each run has a `tracing` span `extract` of target `formwork` with the name of the schema. At the end of the run, the span
//! receives the number of calls and violations, the use of the fallback, the tokens of all calls, and the kind of error. The
//! spans of calls, which layers create, are its children. A target that ignores its schema is logged as a warning.
//!
//! # Blocking
//! Blocking calls use one runtime of the process and run on the calling thread. Inside of an async runtime, including its
//! `spawn_blocking` threads, they return [`ErrorKind::Config`](formwork_core::ErrorKind): `.await` the async method there.
//!
//! # Embedding
//! `examples/embed-extract.rs` uses this crate alone; docs/ARCHITECTURE.md has the size of its dependency tree.

mod backend;
mod blocking;
mod budget;
mod builder;
mod call;
mod clock;
mod drive;
mod driver;
mod ensemble;
mod external;
mod extractor;
mod interrupt;
mod items;
mod journal;
mod longest;
mod observations;
mod observer;
mod partial;
mod rotation;
mod trace;
mod updates;

pub use backend::Backend;
pub use blocking::block_on;
pub use budget::{Budget, Budgets, Reservation};
pub use builder::ExtractorBuilder;
pub use clock::TokioClock;
pub use driver::Driver;
pub use ensemble::{Ensemble, Opinions};
pub use external::{AsyncValidator, CheckResult, Fallback, Situation};
pub use extractor::{Extraction, Extractor};
pub use journal::Journal;
pub use observations::ObservationStore;
pub use observer::{Next, Observer, RunId, Started};
pub use partial::Partial;
pub use rotation::Rotation;
/// A handle that cancels runs from outside. A cancelled run returns [`ErrorKind::Cancelled`](formwork_core::ErrorKind) with every call so
/// far, including the open one. Dropping the future of a run ends the run just as soon, but returns nothing.
pub use tokio_util::sync::CancellationToken;
pub use updates::{Update, Updates};
