//! Models on Amazon Bedrock over the Converse API (`POST /model/{model}/converse`).
//!
//! [`Bedrock`] is a [`Wire`](formwork_wire::Wire): a codec without network access. [`Http`](formwork_wire::Http) joins it with
//! a [`Transport`](formwork_wire::Transport) into a [`Provider`](formwork_core::Provider). [`BedrockConfig`] is the model's section
//! of a configuration file.
//!
//! The key is a Bedrock API key, which is sent as a bearer token. `formwork_http::AwsCredentials` (feature `aws`) signs requests with
//! IAM credentials (SigV4) instead.
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
//! assert_eq!(request.uri().path(), "/model/us.anthropic.claude-haiku-4-5-20251001-v1%3A0/converse-stream");
//! let body: Value = serde_json::from_slice(request.body()).unwrap();
//! assert_eq!(body["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["name"], "thing");
//! # Ok::<(), formwork_core::Fault>(())
//! ```
//!
//! # Output modes
//! - [`Mode::Schema`]: sends the schema as text in `outputConfig.textFormat`. Claude models from 4.5 on and some open models
//!   support it. After a refusal the schema is described in the prompt.
//! - [`Mode::Tool`]: sends the schema as the input schema of one strict tool and forces the model to call it. The input of the
//!   call is the document. Models of Amazon, Anthropic and Mistral support forced tools.
//!
//! Schemas must be lowered to the dialect `anthropic` of `formwork-dialect`.
//!
//! # Streams
//! Answers are streamed with `converse-stream`, whose messages are binary frames with checksums. An exception within a stream is a
//! fault of its class.
//!
//! The crate is tested against recorded exchanges. It has not been tested against the vendor with a key.

mod bedrock;
mod config;
mod decode;
mod encode;
mod frames;
mod wire;

pub use bedrock::{Bedrock, Mode};
pub use config::{BedrockConfig, DEFAULT_KEY_ENV, DEFAULT_REGION};

/// The name of the API in answers that are sent back to it.
pub(crate) const API: &str = "bedrock";
