//! The engine on Restate: many machines, each row an invocation, each call a step of its journal.
//!
//! `engine` submits rows and stores their results; it needs no feature. `worker`, with the feature `restate`, answers Restate's
//! requests. `row` processes a row in a worker, with any durable journal; `entry` is the journal entry of a
//! step. `message` defines the messages of the two sides, `pool` the workers that get the rows; `ingress` and `admin` are clients of Restate's two APIs.

mod admin;
mod engine;
#[cfg(any(test, feature = "restate"))]
mod entry;
#[cfg(feature = "restate")]
mod identity;
mod ingress;
mod message;
mod pool;
#[cfg(any(test, feature = "restate"))]
mod row;
#[cfg(feature = "restate")]
#[expect(deprecated, reason = "services whose name is fixed when they are compiled have no pool")]
mod services;
#[cfg(any(test, feature = "restate"))]
mod slots;
#[cfg(test)]
mod tests;
#[cfg(feature = "restate")]
mod worker;

pub use admin::{Admin, AdminError};
pub use engine::Restate;
pub use pool::Pool;
#[cfg(feature = "restate")]
pub use worker::{MakeExtractor, Worker};
