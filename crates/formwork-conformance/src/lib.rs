//! The tests that every provider runs.
//!
//! A capability is a promise, and this is where it is kept: [`Suite::protocol`] checks a provider that speaks HTTP on the
//! wire, without a socket; [`Suite::live`] checks any provider by what it answers. A provider's test file, with
//! `harness = false`, is a [`Protocol`] and one line:
//!
//! ```no_run
//! # fn doc(protocol: impl formwork_conformance::Protocol) -> std::process::ExitCode {
//! use formwork_conformance::Suite;
//!
//! Suite::new().protocol(protocol).run()
//! # }
//! ```
//!
//! Live trials against a server run when `FORMWORK_LIVE` names it, separated by commas: `FORMWORK_LIVE=ollama cargo test`.
//! A server that is named and not there fails its trials with the command that starts it.

mod live;
mod protocol;
mod reply;
mod script;
mod suite;
mod wire;

pub use live::Live;
pub use protocol::{Protocol, SentRequest, ServerAnswer};
pub use reply::Reply;
pub use suite::Suite;
