//! A chat client whose every answer keeps to a contract.
//!
//! - [`JsonModeChatClient`] asks one question, or holds a [`Conversation`]; [`ChatBuilder`] says how.
//! - [`StructuredAnswerLite`] is the contract, version 1.0; [`StructuredAnswer`], version 1.1, has a payload of your own type.
//! - [`ChatResult`] is what a question comes to: a [`Reply`], or a [`ChatFailure`] with a [`ChatCode`] such as `INVALID_JSON`.
//! - [`ChatTool`] is a tool whose arguments are a contract.
//!
//! Four layers stand between a model and its caller: a system prompt that governs and holds the contract byte for byte, JSON
//! mode (`{"type": "json_object"}`), strict reading, and a validator that is written by hand. An answer that does not pass
//! is corrected by a system message that lists all errors, once by default; the whole of the retrying is
//! [`policy`], carried out by `formwork-extract`.
//!
//! `examples/embed-chat.rs` uses this crate alone.

mod answer;
mod builder;
mod client;
mod contract;
mod conversation;
mod debug;
mod example;
mod result;
mod tool;
mod turn;
mod validator;

pub use answer::{
    DataAnswer, Quality, Source, StructuredAnswer, StructuredAnswerLite, Task, TaskKind, TextAnswer, V1_0,
    V1_1,
};
pub use builder::{ChatBuilder, policy};
pub use client::JsonModeChatClient;
pub use contract::{AnswerContract, CONTRACT_1_0, CONTRACT_1_1};
pub use conversation::Conversation;
pub use example::Example;
pub use result::{ChatCode, ChatFailure, ChatResult, Reply, ToolUse};
pub use tool::ChatTool;
