//! Command models over Cohere's chat API, version 2 (`POST /v2/chat`).
//!
//! [`Cohere`] is a [`Wire`](formwork_wire::Wire): a codec without network access. [`Http`](formwork_wire::Http) joins it with
//! a [`Transport`](formwork_wire::Transport) into a [`Provider`](formwork_core::Provider). [`CohereConfig`] is the model's section
//! of a configuration file.
//!
//! ```
//! use formwork_cohere::Cohere;
//! use formwork_core::{Call, Enforcement, Lowered, Message};
//! use formwork_wire::Wire;
//! use serde_json::{Value, json};
//!
//! let schema = json!({"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a"], "additionalProperties": false});
//! let call = Call::new(vec![Message::user("Hello.")], Lowered::new(Enforcement::Schema, schema.clone()));
//! let request = Cohere::new("command-a-03-2025").encode(&call)?;
//! let body: Value = serde_json::from_slice(request.body()).unwrap();
//! assert_eq!(body["response_format"], json!({"type": "json_object", "schema": schema}));
//! # Ok::<(), formwork_core::Fault>(())
//! ```
//!
//! # Output modes
//! - [`Enforcement::Schema`](formwork_core::Enforcement): sends `response_format` with the schema, lowered to the dialect
//!   `cohere` of `formwork-dialect`.
//! - [`Enforcement::JsonObject`](formwork_core::Enforcement): sends `response_format` without a schema.
//! - [`Enforcement::Tool`](formwork_core::Enforcement): sends one tool, which the model is required to call.
//!
//! The API refuses `response_format` together with tools. A call with both fails before it is sent.
//!
//! # Streams
//! Responses are not streamed. The timeout for the first token (`first_timeout_seconds`) therefore applies to the whole
//! response.
//!
//! The crate is tested against recorded exchanges. It has not been tested against the vendor with a key.

mod cohere;
mod config;
mod decode;
mod encode;
mod wire;

pub use cohere::Cohere;
pub use config::{CohereConfig, DEFAULT_KEY_ENV, DEFAULT_URL, EXAMPLE_MODEL};
