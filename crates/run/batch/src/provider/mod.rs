//! The engine that submits calls to the batch APIs of providers.

mod collect;
mod engine;
mod plan;
mod record;
mod rows;

pub use engine::{ProviderBatch, batch_price};
pub use record::open_files;
