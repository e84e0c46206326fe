//! Runs, calls, spending and API keys of Formwork in one SQLite file, which any SQL tool opens.
//!
//! - **Runs** are recorded off the hot path: [`Ledger::record`] puts a [`RunRecord`] into a bounded queue, and one thread commits groups. Until then
//!   a line of the run is in a file beside the ledger, for the next process if this one is killed. It never
//!   fails its caller. While the file cannot be written, runs wait in the queue; if it is full, requests and answers are left out first and
//!   then runs, and [`Ledger::health`] counts both.
//! - **Spending** is exact: [`Ledger::reserve`] and [`Hold::settle`] return when they are on the disk. While the file is full, locked or
//!   damaged, spending is counted in memory, from what is known of the key, and written later.
//! - **Keys** ([`Ledger::add_key`], [`Ledger::find_key`]) are 256 random bits, of which the file has the SHA-256.
//! - **Values** that satisfied a contract can be cached ([`Ledger::cache_get`]).
//!
//! ```
//! use formwork_core::Time;
//! use formwork_ledger::{Ledger, NewKey, RunQuery, RunRecord, Settings};
//!
//! let ledger = Ledger::in_memory(Settings::default())?;
//! let now = Time(1_795_000_000_000);
//! let (key, secret) = ledger.add_key(NewKey { budget: Some(5_000_000), ..NewKey::new("alice") }, now)?;
//! let key = ledger.find_key(secret.reveal(), now).map(|found| found.id).unwrap_or(key.id);
//!
//! let run = RunRecord::new("/v1/chat/completions", now).with_key(Some(key));
//! let hold = ledger.reserve_blocking(key, 20_000, Some(run.id), now)?;
//! // … the call …
//! hold.settle_blocking(1_234)?;
//! ledger.record(run);
//!
//! ledger.flush_blocking()?;
//! assert_eq!(ledger.runs(&RunQuery { key: Some(key), ..RunQuery::default() })?.runs.len(), 1);
//! assert_eq!(ledger.keys()?[0].left(now), Some(4_998_766));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Times are given by the caller, in milliseconds; money is millionths of a US dollar, never a float. The tables may change with a version; the
//! views `runs`, `attempts`, `violations`, `reasons`, `hours`, `spend` and `answers` are for people and their tools, and the crate's README
//! documents them.

mod bucket;
mod cache;
mod cache_size;
mod core;
mod database;
mod error;
mod hourly;
mod id;
mod id_text;
mod insert;
mod key;
mod keys;
mod known;
mod ledger;
mod memory;
mod overview;
mod paths;
mod period;
#[cfg(test)]
mod plans;
mod process;
mod prune;
mod query;
mod queue;
mod record;
mod recorder;
mod recover;
mod redaction;
mod release;
mod settings;
mod settle;
mod spending;
mod store;
mod task;
mod usd;
mod writer;

pub use crate::core::{Health, Unwritten};
pub use database::Database;
pub use error::Error;
pub use hourly::HourlyReason;
pub use id::RecordId;
pub use key::{Key, KeyError, KeyId, KeyRole, NewKey, Secret};
pub use ledger::Ledger;
pub use overview::{Group, Overview, Version};
pub use period::Period;
pub use prune::{Answers, Prune, Pruned};
pub use query::{Feedback, MAX_PAGE, Page, RunDetail, RunQuery, StoredRun};
pub use record::{RunOutcome, RunRecord, StoredCall, ViolationRecord};
pub use recorder::Recorder;
pub use redaction::{REDACTED, Redaction};
pub use release::Released;
pub use settings::Settings;
pub use spending::{BudgetExceeded, Hold, ReserveError};
pub use store::Format;
pub use task::Committed;
pub use usd::{format as format_usd, parse as parse_usd};
