//! Helpers for tests of code that uses Formwork, without a model.
//!
//! - [`Scripted`] is a provider that answers from a script and records its calls.
//! - [`VirtualClock`] advances instead of sleeping.
//! - [`instance`] generates documents that satisfy a schema, [`near_misses`] documents that violate one keyword of it, and
//!   [`schema`] and [`any_schema`] schemas.
//! - [`each`] runs a test for several items at the same time.
//! - [`aws_message`] writes a message of an event stream of AWS.
//! - `Log`, with the feature `log`, captures the output of `tracing` for one thread.
//! - `server`, with the feature of that name, is a scripted HTTP server on this machine.
//!
//! ```
//! use formwork_core::Provider;
//! use formwork_testkit::{Reply, Scripted};
//!
//! let model = Scripted::new([Reply::text("no JSON"), Reply::text(r#"{"age": 34}"#)]);
//! assert_eq!(model.name(), "scripted");
//! assert!(model.calls().is_empty());
//! ```

mod aws;
mod clock;
mod each;
mod instance;
#[cfg(feature = "log")]
mod log;
mod near_miss;
mod schemas;
mod script;
#[cfg(feature = "server")]
pub mod server;

pub use aws::aws_message;
pub use clock::VirtualClock;
pub use each::each;
pub use instance::instance;
#[cfg(feature = "log")]
pub use log::{FmtSpan, Log};
pub use near_miss::{NearMiss, near_misses};
pub use schemas::{any_schema, schema};
pub use script::{Reply, Scripted};
