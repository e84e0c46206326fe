//! Google's Gemini models, over the `generateContent` API of AI Studio or of Vertex AI.
//!
//! [`Gemini`] is a [`Wire`](formwork_wire::Wire), a pure codec. With a [`Transport`](formwork_wire::Transport) it becomes a
//! [`Provider`](formwork_core::Provider); `examples/embed-gemini.rs` does without a network. [`Config`] is the section of a
//! configuration file.
//!
//! ```
//! use formwork_core::{Call, Enforcement, Lowered, Message, Sampling};
//! use formwork_gemini::Gemini;
//! use formwork_wire::Wire;
//! use serde_json::{Value, json};
//!
//! let schema = json!({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]});
//! let messages = vec![Message::system("Answer in JSON."), Message::user("Maria, 34, moved to Lisbon.")];
//! let call = Call::new(messages, Lowered::new(Enforcement::Schema, schema))
//!     .with_schema_name("person")
//!     .with_sampling(Sampling::default().with_temperature(0.3))
//!     .with_max_tokens(400);
//! let request = Gemini::new("gemini-2.5-flash").encode(&call)?;
//! let body: Value = serde_json::from_slice(request.body()).unwrap();
//! assert_eq!(request.uri(), "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse");
//! assert_eq!(body["systemInstruction"]["parts"], json!([{"text": "Answer in JSON."}]));
//! assert_eq!(body["generationConfig"]["responseJsonSchema"]["required"], json!(["age"]));
//! assert_eq!(body["generationConfig"]["maxOutputTokens"], 400);
//! # Ok::<(), formwork_core::Fault>(())
//! ```
//!
//! # How a schema is sent
//! The dialect that wrote the schema decides:
//!
//! | dialect | members of `generationConfig` |
//! |---|---|
//! | `gemini` and any other | `responseMimeType`, `responseJsonSchema` |
//! | `gemini-openapi` | `responseMimeType`, `responseSchema`: the schema in OpenAPI's words (`nullable`, `propertyOrdering`) |
//! | `json-object` | `responseMimeType` alone |
//! | `prompt` | neither |
//!
//! The header `x-goog-api-key` carries the key. It is never part of an address.
//!
//! # What was tried
//! Recorded requests and responses of the vendor's two APIs decode, and LiteLLM's proxy was called live (2026-11-22). The
//! vendor's own servers were not called.

mod config;
mod decode;
mod encode;
mod fault;
mod gemini;
mod wire;

pub use config::{Config, DEFAULT_URL, Preset, Resolved};
pub use formwork_core::Overrides;
pub use gemini::{Gemini, ThinkingLevel};
