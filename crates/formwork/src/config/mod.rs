//! The configuration file: which models are asked, in which order.

mod common;
mod defaults;
mod document;
mod error;
mod file;
mod find;
mod overlay;
mod schema;
mod serve;

pub use common::Common;
pub use defaults::Defaults;
pub use error::ConfigError;
pub use file::{Config, Section};
pub use schema::schema;
pub use serve::{Alias, Serve};
