//! Models on Amazon Bedrock over the Converse API (`POST /model/{model}/converse`).
//!
//! [`Bedrock`] is a [`Wire`](formwork_wire::Wire), a pure codec; `examples/embed-bedrock.rs` does without a network. The key is a Bedrock API key, which is sent as a bearer token;
//! requests are not signed (SigV4), so that IAM credentials cannot be used without a proxy that signs.
//!
//! ```
//! use formwork_bedrock::Bedrock;
//! use formwork_core::{Call, Enforcement, Lowered, Message};
//! use formwork_wire::Wire;
//! use serde_json::{Value, json};
//!
//! let schema = json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false});
//! let call = Call::new(vec![Message::user("Hello.")], Lowered::new(Enforcement::Schema, schema)).with_schema_name("thing");
//! let request = Bedrock::new("us.anthropic.claude-haiku-4-5-20251001-v1:0").encode(&call)?;
//! assert_eq!(request.uri().path(), "/model/us.anthropic.claude-haiku-4-5-20251001-v1%3A0/converse");
//! let body: Value = serde_json::from_slice(request.body()).unwrap();
//! assert_eq!(body["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["name"], "thing");
//! # Ok::<(), formwork_core::Fault>(())
//! ```
//!
//! # Output modes
//! - [`Mode::Schema`]: the schema is sent as text in `outputConfig.textFormat`, for Claude models from 4.5 on and some open
//!   models. A model that refuses it is asked by the prompt.
//! - [`Mode::Tool`]: the schema is the input of one strict tool that the model is forced to call, and the input of the call is the
//!   text of the answer. Models of Amazon, Anthropic and Mistral take forced tools.
//!
//! Schemas have to be in the dialect `anthropic` of `formwork-dialect`.
//!
//! # Streams
//! Answers come in one piece: the event stream of `converse-stream` has a binary framing of its own and is not read. Limits for a
//! first token (`first_timeout_seconds`) therefore hold for the whole answer.
//!
//! The crate was checked against recorded exchanges; it was not tried against the vendor with a key.

mod bedrock;
mod config;
mod decode;
mod encode;
mod fault;
mod wire;

pub use bedrock::{Bedrock, Mode};
pub use config::{Config, DEFAULT_KEY_ENV, DEFAULT_REGION};
