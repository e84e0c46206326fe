//! The engine that submits calls to the batch APIs of providers.

mod anthropic;
mod api;
mod collect;
mod engine;
pub(crate) mod http;
mod openai;
mod plan;
mod record;
mod rows;

pub use anthropic::AnthropicBatches;
pub use api::{BatchApi, FileLimits, FileRequest, FileResult, FileStatus, Found, SharedBatchApi};
pub use engine::{ProviderBatch, batch_price};
pub use openai::OpenAiBatches;
pub use record::open_files;
