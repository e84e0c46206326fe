//! One module for each command.

pub(crate) mod check;
pub(crate) mod extract;
#[cfg(feature = "local")]
pub(crate) mod models;
pub(crate) mod read;
