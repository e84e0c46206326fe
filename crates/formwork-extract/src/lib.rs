//! Asks language models for typed, schema-valid JSON: async, blocking and streaming.
//!
//! - [`Extractor`] gets values of one type out of texts; built once, used for any number of inputs.
//! - [`Driver`] carries out the steps of a [`Run`](formwork_core::Run), for who puts plans together by hand.
//! - [`Updates`] is a run as a stream: texts, snapshots of the document, attempts, and the outcome.
//! - [`Observer`] is told what runs do; [`AsyncValidator`] and [`Fallback`] have a say where the contract gives them one.
//! - [`Budget`] is shared by runs, [`CancellationToken`] ends them.
//! - [`ObservationStore`] keeps what runs learn of their targets: what those refuse is not asked of them again.
//!
//! Every way of driving is the same code over the same machine, so all of them come to the same result. A provider that
//! never answers is given up at the deadline; time comes from a [`Clock`](formwork_core::Clock), and is
//! [`TokioClock`]'s by default.
//!
//! # Traces
//! Each run is a `tracing` span `extract` of target `formwork`, with the name of the schema, and at its end the number of
//! calls and violations, whether the fallback was used, the tokens of all calls, and the kind of error. Spans of calls,
//! as layers write them, are its children. A target that ignores its schema is a warning in it.
//!
//! # Blocking
//! Blocking calls wait on one runtime that the process shares, on the calling thread. Inside of an async runtime, its
//! `spawn_blocking` threads included, they are refused with [`ErrorKind::Config`](formwork_core::ErrorKind): there,
//! `.await` the async form.
//!
//! # Embedding
//! `examples/embed-extract.rs` uses this crate alone; docs/ARCHITECTURE.md says how many crates come with it.

mod backend;
mod blocking;
mod budget;
mod builder;
mod call;
mod cancel;
mod clock;
mod driver;
mod external;
mod extractor;
mod interrupt;
mod journal;
mod observations;
mod observer;
mod partials;
mod rotation;
mod trace;
mod updates;

pub use backend::Backend;
pub use blocking::block_on;
pub use budget::{Budget, Reservation};
pub use builder::ExtractorBuilder;
pub use cancel::CancellationToken;
pub use clock::TokioClock;
pub use driver::Driver;
pub use external::{AsyncValidator, CheckResult, Fallback, Situation};
pub use extractor::{Extraction, Extractor};
pub use journal::Journal;
pub use observations::ObservationStore;
pub use observer::{Next, Observer, RunId, Started};
pub use rotation::Rotation;
pub use updates::{Update, Updates};
