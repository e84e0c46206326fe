//! The tests that every provider and every dialect has to pass, those of Formwork and those of others.
//!
//! A capability is a promise, and these tests verify it: [`provider()`] tests an HTTP provider on the wire, without a
//! socket; [`Suite::live`] tests any provider by its answers. The test file of a provider, with `harness = false`, is an
//! implementation of [`Protocol`] and one line:
//!
//! ```no_run
//! # fn doc(protocol: impl formwork_conformance::Protocol) -> std::process::ExitCode {
//! formwork_conformance::provider(protocol).run()
//! # }
//! ```
//!
//! A batch API and a pass-through of a kind have tests of their own: [`Suite::batches`] plays the server of a [`BatchProtocol`];
//! [`Suite::pass_through`] and [`Suite::batches_of_section`] test what a section of a configuration opens, on loopback.
//!
//! [`dialect()`] checks the laws of lowering for a dialect, in any test.
//!
//! Live tests against a server run if `FORMWORK_LIVE` names it; several names are separated by commas:
//! `FORMWORK_LIVE=ollama cargo test`. If a named server is not running, its tests fail with the command that starts it.

mod batches;
mod dialect;
mod live;
mod protocol;
mod reply;
mod script;
mod section;
mod suite;
mod trouble;
mod wire;

pub use batches::{BatchOutcome, BatchProtocol, BatchScene};
pub use dialect::{dialect, dialects};
pub use live::Live;
pub use protocol::{Protocol, SentRequest, ServerAnswer};
pub use reply::Reply;
pub use section::ServerOfSection;
pub use suite::{Suite, provider};
pub use trouble::Trouble;
