//! Claude models over Anthropic's Messages API (`POST /v1/messages`, version `2023-06-01`).
//!
//! [`Anthropic`] is a [`Wire`](formwork_wire::Wire), a pure codec. With a [`Transport`](formwork_wire::Transport) it becomes
//! a [`Provider`](formwork_core::Provider); `examples/embed-anthropic.rs` does without a network.
//!
//! ```
//! use formwork_anthropic::{Anthropic, Mode};
//! use formwork_core::{Call, Enforcement, Lowered, Message};
//! use formwork_wire::Wire;
//! use serde_json::{Value, json};
//!
//! let schema = json!({
//!     "type": "object",
//!     "properties": {"age": {"type": "integer"}},
//!     "required": ["age"],
//!     "additionalProperties": false,
//! });
//! let messages = vec![Message::system("Extract."), Message::user("Maria, 34, moved to Lisbon.")];
//! let call = Call::new(messages, Lowered::new(Enforcement::Schema, schema.clone()))
//!     .with_schema_name("person")
//!     .with_max_tokens(400);
//! let body = |wire: Anthropic| -> Result<Value, formwork_core::Fault> {
//!     Ok(serde_json::from_slice(wire.encode(&call)?.body()).unwrap())
//! };
//! let native = body(Anthropic::new("claude-sonnet-4-6"))?;
//! assert_eq!(native["output_config"]["format"], json!({"type": "json_schema", "schema": schema}));
//! let tool = body(Anthropic::new("claude-sonnet-4-6").with_mode(Mode::Tool))?;
//! assert_eq!(tool["tools"][0]["input_schema"], schema);
//! assert_eq!(tool["tool_choice"]["name"], "person");
//! # Ok::<(), formwork_core::Fault>(())
//! ```
//!
//! # Output modes
//! - [`Mode::Schema`]: the schema is sent as `output_config.format`, and the text of the answer is the document.
//! - [`Mode::Tool`]: the schema is sent as the input of one strict tool that the model is forced to call, and the input of
//!   the call is the text of the answer, in streams as well. Some models refuse forced tools, and all refuse them while
//!   they think.
//! - Prompt alone: the dialect `prompt`, which is also the step down from a schema that the API refuses.
//!
//! Schemas have to be in the dialect `anthropic` of `formwork-dialect`, which keeps within the limits of the API (24
//! optional members, 16 unions).
//!
//! # Limits of tokens
//! The API requires `max_tokens`. It is the limit of the call, else [`Anthropic::with_max_tokens`], else the model's limit for
//! answers where it is known ([`Capabilities::output_tokens`](formwork_core::Capabilities)), else 8192. Thinking counts
//! towards it.
//!
//! # Usage
//! The API counts tokens that were read from its cache and tokens that were written to it apart from the other input tokens.
//! [`Usage::input_tokens`](formwork_core::Usage) is the sum of the three, and
//! [`Usage::cached_tokens`](formwork_core::Usage) the tokens that were read from the cache.
//!
//! The crate was checked against recorded exchanges; it was not tried against the vendor with a key.

mod anthropic;
mod config;
mod decode;
mod encode;
mod fault;
mod values;
mod wire;

pub use anthropic::{API_KEY, Anthropic, DEFAULT_MAX_TOKENS};
pub use config::{Config, DEFAULT_KEY_ENV, DEFAULT_URL};
pub use values::{Mode, Thinking};
