//! Scores wallets with a language model.

pub mod event;
