//! Command models over Cohere's chat API, version 2 (`POST /v2/chat`).
//!
//! [`Cohere`] is a [`Wire`](formwork_wire::Wire), a pure codec; `examples/embed-cohere.rs` does without a network.
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
//! - [`Enforcement::Schema`](formwork_core::Enforcement): `response_format` with the schema, in the dialect `cohere` of
//!   `formwork-dialect`.
//! - [`Enforcement::JsonObject`](formwork_core::Enforcement): `response_format` without a schema.
//! - [`Enforcement::Tool`](formwork_core::Enforcement): one tool, which the model is required to call.
//!
//! The API takes no schema beside tools of the caller; a call that has both is refused before it is sent.
//!
//! # Streams
//! Answers come in one piece. Limits for a first token (`first_timeout_seconds`) therefore hold for the whole answer.
//!
//! The crate was checked against recorded exchanges; it was not tried against the vendor with a key.

mod cohere;
mod config;
mod decode;
mod encode;
mod fault;
mod wire;

pub use cohere::Cohere;
pub use config::{Config, DEFAULT_KEY_ENV, DEFAULT_URL};
