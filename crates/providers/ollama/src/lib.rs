//! Ollama's native API.
//!
//! [`Ollama`] is a [`Wire`](formwork_wire::Wire): a codec without network access. It uses `/api/chat`, or `/api/generate` for
//! models without a chat template, and constrained decoding with a schema (`format`, since Ollama 0.5).
//! [`Http`](formwork_wire::Http) joins it with a [`Transport`](formwork_wire::Transport) into a
//! [`Provider`](formwork_core::Provider); `embed-openai.rs` of `formwork-openai` shows this with a simulated server.
//! [`OllamaConfig`] is the model's section of a configuration file, and [`Admin`] lists, shows and pulls models.
//!
//! ```
//! use formwork_core::{Call, Enforcement, Lowered, Message, Sampling};
//! use formwork_ollama::Ollama;
//! use formwork_wire::Wire;
//! use serde_json::{Value, json};
//!
//! let schema = json!({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]});
//! let messages = vec![Message::user("Maria, 34, moved to Lisbon.")];
//! let call = Call::new(messages, Lowered::new(Enforcement::Schema, schema))
//!     .with_schema_name("person")
//!     .with_sampling(Sampling::default().with_temperature(0.3))
//!     .with_max_tokens(400);
//! let request = Ollama::new("qwen3:8b").encode(&call)?;
//! let body: Value = serde_json::from_slice(request.body()).unwrap();
//! assert_eq!(request.uri(), "/api/chat");
//! assert_eq!(body["format"]["required"], json!(["age"]));
//! assert_eq!(body["options"], json!({"temperature": 0.3, "num_predict": 400, "num_ctx": 4096}));
//! assert_eq!(body["truncate"], false);
//! # Ok::<(), formwork_core::Fault>(())
//! ```
//!
//! # Behaviour of Ollama
//! The crate depends on these observations of version 0.17.4 with SmolLM2-135M (2026-11-21):
//! - A prompt that is longer than `num_ctx` is truncated silently. The crate therefore always sends `truncate: false`, which
//!   turns this into an error, and a `num_ctx` that holds prompt and completion; see [`Ollama::with_num_ctx`].
//! - A completion that reaches the end of the context continues after the beginning of the dialogue was dropped. The crate
//!   always sends `shift: false`, which ends the completion with [`Finish::Length`](formwork_core::Finish).
//! - Some schemas fail with status 500 on every attempt; the fault is
//!   [`SchemaRefused`](formwork_core::FaultKind::SchemaRefused). A look-around in a `pattern` crashes the server: such a
//!   schema is refused before it is sent, and a connection that closes without a response to another `pattern` counts as
//!   refused too.
//! - Number bounds, `uniqueItems`, `not` and most formats are accepted and not enforced; MLX models and Ollama's cloud
//!   enforce nothing. [`Ollama::examine`] finds out what is enforced.
//! - The completion of a model that reasons may be unconstrained; see [`Ollama::with_think`].

mod admin;
mod answer;
mod api;
mod capabilities;
mod config;
mod ollama;
mod pattern;
mod probe;
mod probed;
mod request;
mod values;
mod wire;

pub use admin::{Admin, Model, ModelDetails, PullProgress};
pub use api::Api;
pub use config::{DEFAULT_URL, OllamaConfig, base_url_of_host};
pub use ollama::Ollama;
pub use probed::{Identity, Probed};
pub use values::{KeepAlive, Think};

/// The protocol in the table of errors.
pub(crate) const PROTOCOL: &str = "ollama/api";
