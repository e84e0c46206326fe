//! Ollama as a model server, over its native API.
//!
//! [`Ollama`] is a [`Wire`](formwork_wire::Wire): it speaks `/api/chat`, or `/api/generate` for models without a chat
//! template, and has schemas enforced while decoding (`format`, since Ollama 0.5). With a
//! [`Transport`](formwork_wire::Transport) it becomes a [`Provider`](formwork_core::Provider); `examples/embed-ollama.rs` does
//! without a network.
//!
//! ```
//! use std::sync::Arc;
//!
//! use formwork_core::{Call, Enforcement, Lowered, Message, Sampling};
//! use formwork_ollama::Ollama;
//! use formwork_wire::Wire;
//! use serde_json::{Value, json};
//!
//! let call = Call {
//!     messages: vec![Message::user("Maria, 34, moved to Lisbon.")],
//!     schema_name: "person".into(),
//!     lowered: Arc::new(Lowered {
//!         schema: Some(json!({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]})),
//!         enforcement: Enforcement::Schema,
//!         ..Lowered::default()
//!     }),
//!     rules: Vec::new(),
//!     sampling: Sampling { temperature: Some(0.3), ..Sampling::default() },
//!     max_tokens: Some(400),
//!     deadline: None,
//!     tools: Vec::new(),
//! };
//! let request = Ollama::new("qwen3:8b").encode(&call)?;
//! let body: Value = serde_json::from_slice(request.body()).unwrap();
//! assert_eq!(request.uri(), "/api/chat");
//! assert_eq!(body["format"]["required"], json!(["age"]));
//! assert_eq!(body["options"], json!({"temperature": 0.3, "num_predict": 400, "num_ctx": 4096}));
//! assert_eq!(body["truncate"], false);
//! # Ok::<(), formwork_core::Fault>(())
//! ```
//!
//! # What Ollama does, measured
//! 0.17.4 and SmolLM2-135M were tried on 2026-11-21. This shapes what the crate does:
//! - A prompt that is longer than `num_ctx` is cut without a word. So `truncate: false` is always sent, which makes that
//!   an error, and a `num_ctx` that holds prompt and answer; see [`Ollama::with_num_ctx`].
//! - An answer that reaches the end of the context goes on without its beginning. So `shift: false` is always sent, which
//!   ends it there with [`Finish::Length`](formwork_core::Finish).
//! - Some schemas fail with status 500, which no retry cures: these are
//!   [`SchemaRefused`](formwork_core::FaultKind::SchemaRefused). A look-around in a `pattern` kills the server: such a
//!   schema is refused before it is sent, and a connection that closes without an answer to another `pattern` counts as
//!   refused too.
//! - Number bounds, `uniqueItems`, `not` and most formats are accepted and not enforced; MLX models, and Ollama's cloud,
//!   enforce nothing. [`Ollama::examine`] finds out what is enforced.
//! - A model that thinks may answer unconstrained; see [`Ollama::with_think`].

mod admin;
mod answer;
mod asked;
mod capabilities;
mod config;
mod fault;
mod ollama;
mod pattern;
mod probe;
mod request;
mod values;

pub use admin::{Admin, Model, ModelDetails, PullProgress};
pub use config::{Api, Config, DEFAULT_URL, base_url_of_host};
pub use ollama::Ollama;
pub use probe::{Identity, Probed};
pub use values::{KeepAlive, Think};
