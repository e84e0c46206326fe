//! Places of values: generated documents with known places, notations, and any text and value at all.

#![expect(clippy::unwrap_used, reason = "a test may simply fail")]

mod alignment;
mod amounts;
mod candidates;
mod cells;
mod comparison;
mod dates;
mod documents;
mod generated;
mod merging;
mod notations;
mod rows;
mod spelled;
mod untrusted;
