//! The engine that submits calls to the batch APIs of providers.

mod collect;
mod engine;
mod plan;
mod record;
mod rows;

pub use engine::ProviderBatch;
pub use record::open_files;
