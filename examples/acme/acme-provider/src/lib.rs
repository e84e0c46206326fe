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
//! The crate has a file for each decision: `config` (what a section of `formwork.toml` may say), `dialect` (which JSON
//! Schema Acme takes), `wire` (calls into requests), `answer` (bytes into text). Everything else comes from Formwork: keys,
//! time limits, cassettes, retries and the check of every answer.

mod answer;
mod config;
mod dialect;
mod wire;

use std::sync::Arc;

use formwork::config::{ConfigError, Section};
use formwork::dialect::Native;
use formwork::providers::{Kind, Made, Providers, Server, transport};
use formwork::wire::{Auth, Http};
use schemars::schema_for;

pub use config::Config;
pub use dialect::ACME;
pub use wire::Acme;

/// Adds the kind `acme` and the dialect `acme`.
pub fn add_to(providers: Providers) -> Providers {
    let kind = Kind::new("acme", "Acme's own API", schema_for!(Config).to_value(), make);
    providers.with(kind).with_dialect(Arc::new(Native::new(&ACME)))
}

/// Makes the provider of a section.
fn make(section: &Section) -> Result<Made, ConfigError> {
    let config: Config = section.read()?;
    let server = Server {
        base_url: &config.base_url,
        auth: Auth { header: "x-acme-key", prefix: "" },
        api_key_env: config.api_key_env.as_deref(),
        headers: &config.headers,
    };
    let wire = Acme::new(&config.model).with_stream(config.stream);
    let provider = Http::new(wire, transport(section, &server)?).with_name(&section.name);
    // The price in the registry is the vendor's, so it does not apply at another address.
    let address = Some(config.base_url).filter(|url| url != config::DEFAULT_URL);
    Ok(Made {
        provider: Arc::new(provider),
        system: "acme".to_owned(),
        model: config.model,
        address,
        probe: None,
    })
}
