//! OpenAI's Chat Completions API, for OpenAI and all compatible servers, and OpenAI's Responses API.
//!
//! [`OpenAi`] is a [`Wire`](formwork_wire::Wire): a codec without network access. [`Http`](formwork_wire::Http) joins it with
//! a [`Transport`](formwork_wire::Transport) into a [`Provider`](formwork_core::Provider):
//! `Http::new(OpenAi::new("gpt-5.6"), transport)`. [`OpenAiConfig`] is the model's section of a configuration file, and
//! [`presets()`] lists the vendors that it knows by name.
//!
//! Requests follow the specification strictly. Responses are read leniently: a completion that was paid for is not discarded
//! because a server omits a field, has a finish reason of its own, or declares a stream as `application/json`.
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
//! and `store` is always `false`. Comments of the model before its final answer are not part of the completion. The API has
//! no seed. This part is tested against recorded exchanges. It has not been tested against the vendor with a key.
//!
//! `examples/embed-openai.rs` uses the crate alone, with a simulated server.

mod batch;
mod config;
mod decode;
mod encode;
mod fault;
mod line_breaks;
mod models;
mod openai;
mod presets;
mod probe;
mod responses;
mod wire;

pub use batch::OpenAiBatches;
pub use config::{OpenAiConfig, Resolved};
pub use formwork_core::Overrides;
pub use line_breaks::LineBreaks;
pub use openai::{AZURE, Api, MaxTokensField, OpenAi, SystemRole};
pub use presets::{KeyHeader, Preset, Source, preset, presets};
