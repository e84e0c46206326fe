//! Chat Completions: the protocol of OpenAI, and of every server that speaks like it; and OpenAI's Responses API.
//!
//! [`OpenAi`] is a [`Wire`](formwork_wire::Wire), a pure codec. With a transport it is a provider:
//! `Http::new(OpenAi::new("gpt-5.6"), transport)`. [`Config`] is the same as data, and [`presets`] knows vendors by name.
//!
//! It is strict in what it sends and lenient in what it takes: an answer that was paid for is not thrown away because a
//! server leaves out a field, has a finish reason of its own, or calls a stream `application/json`.
//!
//! ```
//! use formwork_core::{Call, Enforcement, Lowered, Message};
//! use formwork_openai::OpenAi;
//! use formwork_wire::Wire;
//!
//! let schema = serde_json::json!({"type": "object"});
//! let messages = vec![Message::user("Maria, 34, moved to Lisbon.")];
//! let call = Call::new(messages, Lowered::new(Enforcement::Schema, schema))
//!     .with_schema_name("Person")
//!     .with_max_tokens(500);
//! let request = OpenAi::new("gpt-5.6").encode(&call)?;
//! assert_eq!(request.uri(), "/chat/completions");
//! let body: serde_json::Value = serde_json::from_slice(request.body()).unwrap();
//! assert_eq!(body["response_format"]["json_schema"]["name"], "Person");
//! # Ok::<(), formwork_core::Fault>(())
//! ```
//!
//! # The Responses API
//! [`OpenAi::with_api`] with [`Api::Responses`] (`api = "responses"` in a configuration) sends the same calls to OpenAI's
//! Responses API. The first system message is sent as `instructions`, a schema as `text.format` or as a forced function tool,
//! and `store` is always `false`. Comments of the model before its final answer are not a part of the answer. The API has no
//! seed. It was checked against recorded exchanges; it was not tried against the vendor with a key.
//!
//! To embed it alone see `examples/embed-openai.rs`.

mod config;
mod decode;
mod encode;
mod fault;
mod models;
mod openai;
mod presets;
mod probe;
mod responses;
mod wire;

pub use config::{Config, Resolved};
pub use formwork_core::Overrides;
pub use openai::{AZURE, Api, MaxTokensField, OpenAi, SystemRole};
pub use presets::{KeyHeader, Preset, Source, preset, presets};
