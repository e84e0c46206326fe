use std::sync::Arc;

use formwork_ollama::{Admin, Config, base_url_of_host};
use formwork_wire::{Auth, Http};
use schemars::SchemaGenerator;

use super::http::{Server, transport};
use super::{Kind, Made};
use crate::config::{ConfigError, Section};

pub(super) fn kind() -> Kind {
    let schema = SchemaGenerator::default().into_root_schema_for::<Config>().to_value();
    Kind::new("ollama", "Ollama's own API, on this machine or another", schema, |section| {
        let config = configured(section)?;
        // A cassette holds the calls that were made, and no probe unless one was.
        let probe = config.probe && section.common.cassette.is_none();
        let provider =
            Http::new(config.wire(), transport(section, &server(&config))?).with_name(&section.name);
        Ok(Made { provider: Arc::new(provider), system: "ollama".to_owned(), model: config.model, probe })
    })
}

/// Returns what administers the models of the server of a section, over the transport that its calls use: with its TLS, key,
/// headers, proxy and time limits. The section's model is not needed.
///
/// # Errors
/// [`ConfigError`], if the section is not of an Ollama server, or its address or key cannot be used.
pub fn ollama_admin(section: &Section) -> Result<Admin, ConfigError> {
    let config = configured(&section.clone().with_default("model", "none"))?;
    Ok(Admin::new(transport(section, &server(&config))?))
}

fn server(config: &Config) -> Server<'_> {
    Server {
        base_url: &config.base_url,
        auth: Auth::BEARER,
        api_key_env: config.api_key_env.as_deref(),
        headers: &config.headers,
    }
}

/// Reads a section. Where it names no server, that is the one that the environment variable `OLLAMA_HOST` names.
fn configured(section: &Section) -> Result<Config, ConfigError> {
    /// The variable of Ollama's own command.
    const HOST: &str = "OLLAMA_HOST";

    match super::variable(HOST) {
        Some(host) => {
            let source = format!("the environment variable {HOST}");
            section.clone().with_default_from(&source, "base_url", &base_url_of_host(&host)).read()
        }
        None => section.read(),
    }
}
