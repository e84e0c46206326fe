//! Typed, schema-valid, cross-checked JSON out of any language model.
//!
//! A model's answer is poured into a mould: a JSON Schema, a Rust type, and the checks of your own. An answer that does
//! not fit is met with the cheapest next step that can make it right: a repair of its text, a question about the wrong
//! values alone, and only then a whole new answer. What comes out has its history with it: every call, what it cost,
//! what was wrong, and where each part of the value comes from.
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
//! // Stands in for a model: gets the age wrong at first, then is asked for the age alone.
//! let model = formwork_testkit::Scripted::new([r#"{"name": "Maria Lindqvist", "age": 340}"#, r#"{"age": 34}"#]);
//!
//! let extractor = Extractor::<Person>::builder()
//!     .with_target(Arc::new(model))
//!     .with_rule(Rule::Quoted { target: "$.name".parse()? })
//!     .build()?;
//! let outcome = extractor.extract_blocking("Maria Lindqvist, 34, moved to Lisbon last spring.")?;
//!
//! assert_eq!((outcome.value.name.as_str(), outcome.value.age), ("Maria Lindqvist", 34));
//! let first = &outcome.attempts[0].verdict;
//! assert!(format!("{first:?}").contains("at most 150"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Everything stands in a crate of its own, and here under one name:
//!
//! - [`extract`]: extractors and drivers, async, blocking and streaming.
//! - [`chat`]: a client whose every answer keeps to a contract. [`shape`]: JSON as people write it down.
//! - `review`, `skill`, `oracle`, each with the feature of that name: rubrics, skills as files, scores of wallets.
//! - `golden`, with the feature of that name: schema files of your own types, checked by your own CI.
//! - [`core`]: contracts, violations, policies, providers, and the machine that decides.
//! - [`dialect`]: schemas in the dialects of providers.
//! - [`schema`]: JSON Schema; every violation in words, and a lint for the schema itself.
//! - [`json`]: finds and reads JSON in model text.
//! - [`layers`]: time-outs, a limit of calls at once, traces.
//! - [`anthropic`], [`gemini`], [`ollama`], [`openai`], [`prompt`], [`http`], [`wire`]: models behind servers. `local`, with the feature of that name:
//!   a model in this process; no default feature brings it along.
//!
//! Which model is asked is a matter of a file, [`config`], and of [`providers`], which knows what its words stand for:
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
#[cfg(feature = "golden")]
pub mod golden;
pub mod providers;

mod setup;

#[cfg(feature = "anthropic")]
pub use formwork_anthropic as anthropic;
pub use formwork_chat as chat;
pub use formwork_core as core;
pub use formwork_dialect as dialect;
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

/// README.md's snippet compiles as it stands.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
