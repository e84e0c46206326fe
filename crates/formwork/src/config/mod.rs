//! The configuration file: the models, their order, and their settings.

mod common;
mod defaults;
mod document;
mod error;
mod file;
mod find;
mod lists;
mod overlay;
mod redaction;
mod schema;
mod section;
mod serve;
mod settings;
mod telemetry;
mod trust;

pub use common::{CloudCredentials, Common};
pub use defaults::{Defaults, Places};
pub use error::ConfigError;
pub use file::{Config, Named};
pub(crate) use find::is_of_user;
pub use lists::{TargetList, TargetOrder};
pub use redaction::Redaction;
#[cfg(feature = "golden")]
pub(crate) use schema::drop_examples;
pub use schema::schema;
pub use section::Section;
pub(crate) use section::variable;
pub use serve::Serve;
pub use settings::{Setting, without_secrets};
pub use telemetry::Telemetry;
pub use trust::TrustedFiles;
