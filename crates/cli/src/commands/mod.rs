//! One module for each command.

pub(crate) mod batch;
pub(crate) mod chat;
pub(crate) mod check;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod eval;
pub(crate) mod evidence;
pub(crate) mod extract;
pub(crate) mod init;
pub(crate) mod keys;
pub(crate) mod lower;
#[cfg(feature = "local")]
pub(crate) mod models;
pub(crate) mod oracle;
pub(crate) mod read;
pub(crate) mod review;
pub(crate) mod runs;
pub(crate) mod serve;
pub(crate) mod shape;
pub(crate) mod skill;
pub(crate) mod store;
pub(crate) mod worker;
