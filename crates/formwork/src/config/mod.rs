//! The configuration file: the models, their order, and their settings.

mod common;
mod defaults;
mod document;
mod error;
mod file;
mod find;
mod overlay;
mod schema;

pub use common::Common;
pub use defaults::Defaults;
pub use error::ConfigError;
pub use file::{Config, Section};
pub use schema::schema;
