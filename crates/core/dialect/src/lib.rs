//! Lowers JSON Schema to the dialects of language models and their servers.
//!
//! A [`Lower`](formwork_core::Lower) writes a schema in the dialect of a provider and returns a
//! [`Lowered`](formwork_core::Lowered): the schema to send, the text for the prompt, the operations that lift an
//! answer, and a lowering report of the keywords that the dialect cannot express. Validation always uses the original
//! schema.
//!
//! - [`Native`] is a dialect with enforcement: OpenAI's, Anthropic's, Gemini's, llama.cpp's, Ollama's, llguidance's.
//! - [`JsonObject`] is for providers that enforce some JSON object.
//! - [`Prompt`] only describes the schema in the prompt.
//! - [`Silent`] wraps any of them, for a prompt that already describes the schema.
//! - [`modes`] returns the dialects that a provider declares.
//! - [`registry`] has the known facts about models by their names.
//! - [`lint`] reports the keywords of a schema that a server would reject, ignore or misread.
//! - [`Dialects`] is the table of all dialects by name. A dialect of your own is data ([`profile`]) or a type
//!   ([`Dialect`]), added by [`Dialects::with`].
//!
//! Lowering is *sound*: some answer that the lowered schema allows satisfies the original. Many converters are not: for
//! ordinary Rust types (`#[serde(flatten)]`, tagged enums) they write schemas that forbid every valid answer.
//!
//! ```
//! use formwork_core::{LowerRequest, Refused};
//! use serde_json::json;
//!
//! fn main() -> Result<(), Refused> {
//!     let schema = json!({
//!         "type": "object",
//!         "properties": {
//!             "reasoning": {"type": "string"},
//!             "risks": {"type": "array", "items": {"enum": ["low", "high"]}, "uniqueItems": true},
//!         },
//!         "required": ["reasoning"],
//!     });
//!     for dialect in formwork_dialect::Dialects::builtin().iter() {
//!         let lowered = dialect.lower(&LowerRequest::new(&schema))?;
//!         println!("{}:\n  sent {:?}\n  shown {:?}", dialect.name(), lowered.schema, lowered.prompt_schema);
//!         lowered.losses.iter().for_each(|loss| println!("  {loss}"));
//!     }
//!     Ok(())
//! }
//! ```

mod anthropic;
mod azure;
mod cohere;
mod depth;
mod dialect;
mod dialects;
mod expand;
mod form;
mod gemini;
mod groq;
mod json_object;
mod limited;
mod limits;
mod lint;
mod lower_value;
mod mistral;
mod modes;
mod native;
mod order;
mod outline;
mod pattern;
mod place;
mod plain;
pub mod profile;
mod prompt;
mod reaction;
pub mod registry;
mod reshape;
mod silent;
mod tighten;
mod tool;
mod write;
mod xai;
mod xgrammar;

pub use dialect::Dialect;
pub use dialects::{Dialects, lint};
pub use json_object::JsonObject;
pub use limited::Limited;
pub use lower_value::lower_value;
pub use modes::{dialect, modes};
pub use native::Native;
pub use prompt::Prompt;
pub use reaction::Reaction;
pub use silent::Silent;
pub use tool::Tool;
