//! Typed, schema-valid, cross-checked JSON out of any language model.
//!
//! A model's answer is validated against a JSON Schema, a Rust type, and your own checks. An invalid answer gets the
//! cheapest correction that can make it valid: a repair of its text, a request for the wrong values only, and only then
//! a whole new answer. The result has its history: every call, its cost, its violations, and the origin of each part of
//! the value.
//!
//! ```
//! use formwork::{Extractor, Rule};
//! use std::sync::Arc;
//!
//! #[derive(schemars::JsonSchema, serde::Deserialize)]
//! struct Person {
//!     name: String,
//!     #[schemars(range(max = 150))]
//!     age: u8,
//! }
//!
//! // A scripted model: its first answer has a wrong age, so the second request is for the age only.
//! let model = formwork_testkit::Scripted::new([r#"{"name": "Maria Lindqvist", "age": 340}"#, r#"{"age": 34}"#]);
//!
//! let extractor = Extractor::<Person>::builder()
//!     .with_target(Arc::new(model))
//!     .with_rule(Rule::grounded("$.name".parse()?))
//!     .build()?;
//! let outcome = extractor.extract_blocking("Maria Lindqvist, 34, moved to Lisbon last spring.")?;
//!
//! assert_eq!((outcome.value.name.as_str(), outcome.value.age), ("Maria Lindqvist", 34));
//! let first = &outcome.calls[0].verdict;
//! assert!(format!("{first:?}").contains("at most 150"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Each part has a crate of its own, and is re-exported here:
//!
//! - [`extract`]: extractors and drivers, async, blocking and streaming.
//! - [`chat`]: a client whose answers satisfy a contract. [`shape`]: a notation for the form of JSON.
//! - `review`, `skill`, `oracle`, each with the feature of that name: rubrics, skills as files, scores of wallets.
//! - `golden`, with the feature of that name: schema files of your own types, checked by your own CI.
//! - [`core`]: contracts, violations, policies, providers, and the state machine of a run.
//! - [`dialect`]: lowers schemas to the dialects of providers.
//! - [`schema`]: JSON Schema validation with readable messages, and a linter for schemas.
//! - [`json`]: finds and parses JSON in the text of models.
//! - [`layers`]: time-outs, limits of concurrency, traces.
//! - [`anthropic`], [`gemini`], [`ollama`], [`openai`], [`prompt`], [`http`], [`wire`]: models behind servers.
//! - `local`, with the feature of that name: a model in this process; no default feature includes it.
//!
//! A [configuration file](config) names the models, and [`providers`] creates them:
//!
//! ```no_run
//! # #[derive(schemars::JsonSchema, serde::Deserialize)]
//! # struct Person { name: String }
//! # async fn doc() -> Result<(), formwork::Error> {
//! use formwork::{Extractor, Setup};
//!
//! // formwork.toml of this project, or the user's
//! let setup = Setup::find(None).await?;
//! let extractor: Extractor<Person> = setup.extractor().build()?;
//! let person = extractor.extract("Maria Lindqvist, 34, moved to Lisbon last spring.").await?.value;
//! # Ok(()) }
//! ```

mod cache;
pub mod config;
pub mod contract;
#[cfg(feature = "golden")]
pub mod golden;
pub mod providers;

mod setup;
pub mod store;

#[cfg(feature = "anthropic")]
pub use formwork_anthropic as anthropic;
#[cfg(feature = "bedrock")]
pub use formwork_bedrock as bedrock;
pub use formwork_chat as chat;
#[cfg(feature = "cohere")]
pub use formwork_cohere as cohere;
pub use formwork_core as core;
pub use formwork_dialect as dialect;
pub use formwork_eval as eval;
pub use formwork_evidence as evidence;
pub use formwork_extract as extract;
#[cfg(feature = "gemini")]
pub use formwork_gemini as gemini;
#[cfg(feature = "http")]
pub use formwork_http as http;
pub use formwork_json as json;
pub use formwork_layers as layers;
#[cfg(feature = "local")]
pub use formwork_local as local;
#[cfg(feature = "ollama")]
pub use formwork_ollama as ollama;
#[cfg(feature = "openai")]
pub use formwork_openai as openai;
#[cfg(feature = "oracle")]
pub use formwork_oracle as oracle;
pub use formwork_prompt as prompt;
#[cfg(feature = "review")]
pub use formwork_review as review;
pub use formwork_schema as schema;
pub use formwork_shape as shape;
#[cfg(feature = "skill")]
pub use formwork_skill as skill;
#[cfg(feature = "http")]
pub use formwork_wire as wire;

pub use cache::folder as cache_folder;
pub use formwork_core::{Error, ErrorKind, Input, Message, Outcome, Policy, Provider, Rule, Violation};
pub use formwork_extract::{Backend, CancellationToken, Extractor};
pub use setup::Setup;

/// The Rust examples of README.md and of the pages of docs/SUMMARY.md, as doctests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/extensions.md")]
    struct Extensions;
    #[doc = include_str!("../../../docs/library.md")]
    struct Library;
    #[doc = include_str!("../../../docs/rules.md")]
    struct Rules;
    #[cfg(feature = "golden")]
    #[doc = include_str!("../../../docs/schemas-in-ci.md")]
    struct SchemasInCi;
}
