//! Rows whose worker dies at any moment, and batches whose Restate is a played one.

mod batches;
mod journal;
mod pace;
mod provider;
mod rows;
mod server;
