//! A chat client whose answers satisfy a contract.
//!
//! - [`JsonModeChatClient`] asks one question, or holds a [`Conversation`]; [`ChatBuilder`] configures it.
//! - [`StructuredAnswerLite`] is version 1.0 of the contract; [`StructuredAnswer`] is version 1.1, with a payload of your
//!   own type.
//! - [`ChatResult`] is the result of a question: a [`Reply`], or a [`ChatFailure`] with a [`ChatCode`] such as
//!   `INVALID_JSON`.
//! - [`ChatTool`] is a tool that the model can call, with typed arguments.
//!
//! Every answer passes four layers: a governing system prompt that contains the contract byte for byte, JSON mode
//! (`{"type": "json_object"}`), a strict parser, and a hand-written validator. An invalid answer is corrected by a system
//! message that lists all errors, once by default. [`policy`] defines the retries, and
//! `formwork-extract` makes them.
//!
//! ```
//! use std::sync::Arc;
//!
//! use formwork_chat::{ChatTool, JsonModeChatClient};
//! use formwork_testkit::Scripted;
//! use serde_json::json;
//!
//! #[derive(schemars::JsonSchema, serde::Deserialize)]
//! struct City {
//!     city: String,
//! }
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let tool_call = json!({"tool": {"name": "weather", "arguments": {"city": "Lisbon"}}}).to_string();
//!     let answer = json!({
//!         "task": {"type": "qa", "user_intent": "know the weather"},
//!         "answer": {"text": "It is sunny in Lisbon."},
//!         "quality": {"confidence": 0.9, "assumptions": [], "risks": []},
//!         "debug": {"schema_version": "1.0", "model": "a script"},
//!     });
//!     let model = Arc::new(Scripted::new([tool_call.as_str(), "Sunny!", &answer.to_string(), "{}"]));
//!     let weather = ChatTool::new("weather", "Says what the weather is.", |City { city }| async move {
//!         Ok::<_, String>(format!("sunny in {city}"))
//!     })?;
//!     let client =
//!         JsonModeChatClient::builder().with_target(model).with_tool(weather).with_debug(true).build()?;
//!     let reply = client.ask_blocking("How is the weather in Lisbon?").into_result()?;
//!     println!("{} (after {})", reply.answer.answer.text, reply.tools[0]);
//!     if let Some(failure) = client.ask_blocking("And tomorrow?").failure() {
//!         println!("{}, {} errors", failure.code, failure.errors.len());
//!     }
//!     Ok(())
//! }
//! ```

mod answer;
mod builder;
mod calls;
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
