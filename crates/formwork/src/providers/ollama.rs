use std::collections::BTreeMap;
use std::sync::Arc;

use formwork_core::{Fault, SharedProvider, Usage};
use formwork_ollama::{Admin, Config, Ollama, base_url_of_host};
use formwork_wire::{Auth, Http, SharedTransport};
use schemars::SchemaGenerator;

use super::http::{Server, transport};
use super::raw::{Protocol, Raw};
use super::{Kind, Made, Probe, ProbeCache, Probed};
use crate::config::{ConfigError, Section};

pub(super) fn kind() -> Kind {
    let schema = SchemaGenerator::default().into_root_schema_for::<Config>().to_value();
    Kind::new("ollama", "Ollama's own API, on this machine or another", schema, |section| {
        let config = configured(section)?;
        let transport = transport(section, &server(&config))?;
        let address = Some(config.base_url.clone());
        let asked = Asked { name: section.name.clone(), transport, config };
        let provider = asked.provider(asked.config.wire());
        let model = asked.config.model.clone();
        // A cassette holds the calls that were made, and no probe unless one was.
        let probes = asked.config.probe && section.common.cassette.is_none();
        let probe = probes.then(|| {
            Probe::new(move |fresh| {
                let asked = asked.clone();
                async move { asked.probe(fresh).await }
            })
        });
        Ok(Made { provider, system: "ollama".to_owned(), model, address, probe })
    })
}

/// A server, and how it is asked.
#[derive(Clone)]
struct Asked {
    name: String,
    config: Config,
    transport: SharedTransport,
}

impl Asked {
    fn provider(&self, wire: Ollama) -> SharedProvider {
        Arc::new(Http::new(wire, Arc::clone(&self.transport)).with_name(&self.name))
    }

    /// Asks the server what it enforces, unless that was found out before for this version and this model.
    async fn probe(&self, fresh: bool) -> Result<Probed, Fault> {
        let wire = self.config.wire();
        let identity = wire.identity(&*self.transport).await?;
        // What cannot be told from another version is not kept.
        let entry = identity.and_then(|identity| ProbeCache::of(&(self.distinguishing(), identity)));
        let kept = entry.as_ref().filter(|_| !fresh).and_then(ProbeCache::read::<formwork_ollama::Probed>);
        let (found, usage) = match kept {
            Some(kept) => (kept, Usage::default()),
            None => {
                let found = wire.examine(&*self.transport).await?;
                if let Some(entry) = &entry {
                    entry.write(&found);
                }
                let usage = found.usage;
                (found, usage)
            }
        };
        Ok(Probed { provider: self.provider(wire.with_probed(&found)), notes: found.notes, usage })
    }

    /// The part of the configuration that the findings depend on: nothing secret.
    fn distinguishing(&self) -> Config {
        Config { api_key_env: None, headers: BTreeMap::new(), ..self.config.clone() }
    }
}

pub(super) fn raw(section: &Section) -> Result<Raw, ConfigError> {
    let config = configured(section)?;
    let transport = transport(section, &server(&config))?;
    Ok(Raw { protocol: Protocol::Ollama, transport, model: config.model })
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
