//! One module for each command.

pub(crate) mod check;
pub(crate) mod read;
