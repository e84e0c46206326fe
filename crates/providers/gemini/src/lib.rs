//! Google's Gemini models, over the `generateContent` API of AI Studio or of Vertex AI.
//!
//! [`Gemini`] is a [`Wire`](formwork_wire::Wire): a codec without network access. [`Http`](formwork_wire::Http) joins it with
//! a [`Transport`](formwork_wire::Transport) into a [`Provider`](formwork_core::Provider); `embed-openai.rs` of
//! `formwork-openai` shows this with a simulated server. [`GeminiConfig`] is the model's section of a configuration file.
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
//! let request = Gemini::new("gemini-3.5-flash").encode(&call)?;
//! let body: Value = serde_json::from_slice(request.body()).unwrap();
//! assert_eq!(request.uri(), "/v1beta/models/gemini-3.5-flash:streamGenerateContent?alt=sse");
//! assert_eq!(body["systemInstruction"]["parts"], json!([{"text": "Answer in JSON."}]));
//! assert_eq!(body["generationConfig"]["responseJsonSchema"]["required"], json!(["age"]));
//! assert_eq!(body["generationConfig"]["maxOutputTokens"], 400);
//! # Ok::<(), formwork_core::Fault>(())
//! ```
//!
//! # How a schema is sent
//! The dialect of the lowered schema determines the properties of `generationConfig`:
//!
//! | dialect | properties |
//! |---|---|
//! | `gemini` and any other | `responseMimeType`, `responseJsonSchema` |
//! | `gemini-openapi` | `responseMimeType`, `responseSchema`: the schema as OpenAPI 3.0 (`nullable`, `propertyOrdering`) |
//! | `json-object` | only `responseMimeType` |
//! | `prompt` | neither |
//!
//! The header `x-goog-api-key` carries the key. The key is never part of a URL.
//!
//! # Tested against
//! The crate decodes recorded exchanges of AI Studio and Vertex AI, and was run against LiteLLM's proxy (2026-11-22). It has
//! not been tested against the vendor's servers.

mod config;
mod decode;
mod encode;
mod gemini;
mod wire;

pub use config::{DEFAULT_KEY_ENV, DEFAULT_URL, EXAMPLE_MODEL, GeminiConfig, Preset, Resolved};
pub use formwork_core::Overrides;
pub use gemini::{Gemini, ThinkingLevel};

/// The name of the API in answers that are sent back to it.
pub(crate) const API: &str = "gemini";
