//! Claude models over Anthropic's Messages API (`POST /v1/messages`, version `2023-06-01`).
//!
//! [`Anthropic`] is a [`Wire`](formwork_wire::Wire): a codec without network access. [`Http`](formwork_wire::Http) joins it
//! with a [`Transport`](formwork_wire::Transport) into a [`Provider`](formwork_core::Provider);
//! `embed-openai.rs` of `formwork-openai` shows this with a simulated server. [`AnthropicConfig`] is the model's section of a
//! configuration file.
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
//! - [`Mode::Schema`]: sends the schema as `output_config.format`. The text of the response is the document.
//! - [`Mode::Tool`]: sends the schema as the input schema of one strict tool and forces the model to call it. The input of
//!   that call is the document, in streams as well. Some models refuse forced tools, and every model refuses them while
//!   thinking is on.
//! - Prompt only (the dialect `prompt`): the fallback after the API refused a schema.
//!
//! Schemas must be lowered to the dialect `anthropic` of `formwork-dialect`, which respects the limits of the API (24
//! optional properties, 16 unions).
//!
//! # Token limits
//! The API requires `max_tokens`. The first of these that is known is sent: the limit of the call,
//! [`Anthropic::with_max_tokens`], the model's output limit ([`Capabilities::output_tokens`](formwork_core::Capabilities)),
//! [`DEFAULT_MAX_TOKENS`]. Thinking tokens count towards the limit.
//!
//! # Usage
//! The API reports cache reads, cache writes and other input tokens as three numbers.
//! [`Usage::input_tokens`](formwork_core::Usage) is their sum, and [`Usage::cached_tokens`](formwork_core::Usage) counts the
//! cache reads.
//!
//! The crate is tested against recorded exchanges. It has not been tested against the vendor with a key.

mod anthropic;
mod batch;
mod config;
mod decode;
mod encode;
mod values;
mod wire;

pub use anthropic::{API_KEY, Anthropic, DEFAULT_MAX_TOKENS};
pub use batch::AnthropicBatches;
pub use config::{AnthropicConfig, DEFAULT_KEY_ENV, DEFAULT_URL, EXAMPLE_MODEL};
pub use values::{Mode, Thinking};

/// The name of the API in answers that are sent back to it.
pub(crate) const API: &str = "anthropic";
