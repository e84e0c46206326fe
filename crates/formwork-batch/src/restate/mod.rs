//! The engine on Restate: many machines, each row an invocation, each call a step of its journal.
//!
//! `engine` submits rows and stores their results; it needs no feature. `worker`, with the feature `restate`, answers Restate's
//! requests. `row` is what a worker does with a row, whatever makes its steps durable; `entry` is what the journal keeps of a
//! step. `message` is what the two sides say to each other, `ingress` and `admin` are Restate's two interfaces.

mod admin;
mod engine;
#[cfg(any(test, feature = "restate"))]
mod entry;
mod ingress;
mod message;
#[cfg(any(test, feature = "restate"))]
mod row;
#[cfg(any(test, feature = "restate"))]
mod slots;
#[cfg(test)]
mod tests;
#[cfg(feature = "restate")]
mod worker;

pub use admin::{Admin, AdminError};
pub use engine::{Restate, start_anew};
#[cfg(feature = "restate")]
pub use worker::{MakeExtractor, Worker};
