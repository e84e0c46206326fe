//! Batches of extractions that survive crashes: every attempt is durable before the next one, and every row has one result.
//!
//! - [`Batch`] is the durable state of a batch on SQLite, in a folder of its own: rows, states, results. [`View`] looks at it
//!   from other processes.
//! - [`Store`] is its interface for engines, and [`Engine`] the interface of what takes rows to their results. The rules that an
//!   engine keeps are documented there.
//! - [`InProcess`] is the engine that asks models from this process, at the [`Pace`] that they take.
//! - [`ProviderBatch`] is the engine that submits files of calls to the batch APIs of providers ([`BatchApi`]), at half the price.
//! - [`Restate`] is the engine that lets many machines ask models: rows are durable invocations of a Restate server, and `Worker`
//!   (feature `restate`) is what answers them.
//!
//! [`ExtractorBatch`] is all of that in one call:
//! `extractor.batch(rows, folder)`.
//!
//! A crash at any moment loses nothing that was stored: rows with a result are not asked about again, a run that was begun goes
//! on with its next step, and at most the calls that were in flight are repeated.

mod aimd;
mod drive;
mod engine;
mod error;
mod estimate;
mod extractor;
mod halt;
mod input;
mod pace;
mod process;
mod progress;
mod provider;
mod restate;
mod row;
mod sqlite;

pub use aimd::Aimd;
pub use engine::{Control, Ended, Engine, Stop, Store};
pub use error::BatchError;
pub use estimate::{Estimate, estimate};
pub use extractor::ExtractorBatch;
pub use input::{Rows, read_rows};
pub use pace::Pace;
pub use process::InProcess;
pub use progress::Progress;
pub use provider::{
    AnthropicBatches, BatchApi, FileLimits, FileRequest, FileResult, FileStatus, Found, OpenAiBatches,
    ProviderBatch, SharedBatchApi, batch_price, open_files,
};
pub use restate::{Admin, AdminError, Restate, start_anew};
#[cfg(feature = "restate")]
pub use restate::{MakeExtractor, Worker};
pub use row::{
    BadRow, Identified, MAX_INPUT, OpenRow, RejectedError, RejectedLine, ResultLine, Row, RowEnd, RowState,
};
pub use sqlite::{Batch, MaxFailures, Spec, View};
