//! The API of Acme, an invented vendor, as a provider for Formwork.
//!
//! Acme takes `POST /v2/completions`:
//!
//! ```json
//! {"engine": "anvil-1", "turns": [{"speaker": "user", "says": "…"}], "shape": {"schema": {}}, "limit": 200, "stream": true}
//! ```
//!
//! It answers with one document, `{"reply": "…", "stopped": "end", "tokens": {"read": 11, "written": 7}}`, or with a stream
//! of lines, `{"piece": "…"}`, whose last one has the members of the document without `reply`. Errors are
//! `{"problem": "…"}`, with a status or within a stream.
//!
//! Acme also takes Chat Completions at `/openai/v1`, and files of requests at `/v2/nights`.
//!
//! The crate has a file for each decision: `config` (what a section of `formwork.toml` may say), `dialect` (which JSON
//! Schema Acme takes), `wire` (calls into requests), `answer` (bytes into text), `batch` (files of requests), `rule` and `policy`.
//! Everything else comes from Formwork: keys, time limits, cassettes, retries and the check of every answer.

mod answer;
mod batch;
mod config;
mod dialect;
mod policy;
mod rule;
mod wire;

use std::sync::Arc;

use formwork::config::{ConfigError, Section};
use formwork::dialect::Native;
use formwork::providers::{Hosted, Kind, Made, Protocol, Providers, Raw, Server};
use formwork::wire::Auth;

pub use batch::AcmeBatches;
pub use config::Config;
pub use dialect::ACME;
pub use policy::Twice;
pub use rule::{CheckDigit, check_digit};
pub use wire::Acme;

/// Adds the kind `acme` with its pass-through and its batch API, the dialect `acme`, the rule `check-digit` and the retry policy
/// `twice`.
pub fn add_to(providers: Providers) -> Providers {
    let kind = Kind::of::<Config>("acme", "Acme's own API", make)
        .with_raw(|section| pass(section).map(Some))
        .with_batch(|section| open(section)?.batch(section, AcmeBatches::new).map(Some));
    let dialect = Arc::new(Native::new(&ACME));
    providers.with(kind).with_dialect(dialect).with_rule(Arc::new(CheckDigit)).with_policy("twice", Twice)
}

/// Reads a section.
fn open(section: &Section) -> Result<Hosted<Acme>, ConfigError> {
    let config: Config = section.read()?;
    let server = Server::new(config.base_url, Auth { header: "x-acme-key", prefix: "" })
        .with_key_env(config.api_key_env.as_deref())
        .with_headers(&config.headers);
    let wire = Acme::new(&config.model).with_stream(config.stream);
    Ok(Hosted { wire, server, model: config.model })
}

/// Creates the provider of a section.
fn make(section: &Section) -> Result<Made, ConfigError> {
    Ok(open(section)?.make(section)?.with_default_address(config::DEFAULT_URL))
}

/// Returns the server for Chat Completions that are passed on unchanged.
fn pass(section: &Section) -> Result<Raw, ConfigError> {
    let mut hosted = open(section)?;
    hosted.server.base_url.push_str("/openai/v1");
    hosted.raw(section, Protocol::OpenAi)
}
