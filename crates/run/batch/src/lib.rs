//! Batches of extractions that can be resumed after a crash: every call is stored before the next one, and every row has one result.
//!
//! - [`Batch`] is the durable state of a batch in SQLite, in its own folder: rows, states, results. [`View`] reads it from other
//!   processes.
//! - [`Store`] is its interface for engines. [`Engine`] is the interface of the code that processes rows, with the rules for engines.
//! - [`InProcess`] is the engine that calls models from this process, with as many concurrent calls as they sustain ([`Pace`]).
//! - [`ProviderBatch`] is the engine that submits files of calls to the batch APIs of providers ([`BatchApi`](formwork_wire::batch::BatchApi)), at half the price.
//! - [`Restate`] is the engine for many machines: rows are durable invocations of a Restate server, and each `Worker` (feature
//!   `restate`) processes some of them.
//!
//! [`ExtractorBatch`] does all of this in one call: `extractor.batch(rows, folder)`.
//!
//! After a crash, rows with a result are not processed again, a run that has begun continues with its next step, and at most the
//! calls that were in flight are repeated.

mod concurrency;
mod drive;
mod engine;
mod error;
mod estimate;
mod extractor;
mod halt;
mod input;
mod members;
mod output;
mod pace;
mod process;
mod progress;
mod provider;
mod question;
mod restate;
mod row;
mod sqlite;

/// The message about a format that this build lacks.
#[cfg(not(feature = "parquet"))]
pub(crate) const NO_PARQUET: &str = "this build reads and writes no Parquet and Arrow (feature `parquet`): install one with `cargo install \
     formwork-cli --features parquet`, or use CSV or JSON Lines";

pub use engine::{Control, Ended, Engine, Stop, Store};
pub use error::BatchError;
pub use estimate::{Estimate, Known, estimate};
pub use extractor::ExtractorBatch;
pub use input::{Columns, Quoted, Render, Rows, read_rows};
pub use pace::Pace;
pub use process::InProcess;
pub use progress::Progress;
pub use provider::{ProviderBatch, open_files};
pub use question::Question;
pub use restate::{Admin, AdminError, Pool, Restate};
#[cfg(feature = "restate")]
pub use restate::{MakeExtractor, Worker};
pub use row::{
    BadRow, Identified, MAX_INPUT, OpenRow, RejectedError, RejectedLine, ResultLine, Row, RowEnd, RowState,
};
pub use sqlite::{Answers, Batch, Entry, Judged, MaxFailures, Spec, View};
