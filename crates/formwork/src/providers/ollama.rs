use std::collections::BTreeMap;
use std::sync::Arc;

use formwork_core::{Fault, ModelSettings, SharedProvider, Usage};
use formwork_ollama::{Admin, Ollama, OllamaConfig, base_url_of_host};
use formwork_wire::{Auth, Http, SharedTransport};

use super::hosted::Hosted;
use super::http::transport;
use super::raw::Protocol;
use super::server::Server;
use super::{Kind, Made, Probe, ProbeCache, Probed};
use crate::config::{ConfigError, Section, variable};

pub(super) fn kind() -> Kind {
    Kind::of::<OllamaConfig>("ollama", "Ollama's own API, on this machine or another", make).with_raw(
        |section| {
            let config = configured(section)?;
            let (wire, server) = (config.wire(), server(&config));
            Hosted { wire, server, model: config.model }.raw(section, Protocol::Ollama).map(Some)
        },
    )
}

fn make(section: &Section) -> Result<Made, ConfigError> {
    let config = configured(section)?;
    let transport = transport(section, &server(&config))?;
    let settings = section.settings();
    let row = section.registry().lookup(&format!("ollama/{}", config.model));
    let row = row.filter(|row| row.provider == "ollama" && config.num_ctx.is_none());
    let context_tokens = row.and_then(|row| row.context_tokens);
    let probed = Asked { name: section.name.clone(), transport, config, context_tokens, settings };
    let provider = probed.provider(probed.wire());
    let made = Made::new(provider, "ollama", &probed.config.model)
        .with_address(Some(probed.config.base_url.clone()));
    // A cassette contains recorded calls, and a probe only if one was recorded.
    if !probed.config.probe || section.common.cassette.is_some() {
        return Ok(made);
    }
    Ok(made.with_probe(Probe::new(move |fresh| {
        let probed = probed.clone();
        async move { probed.probe(fresh).await }
    })))
}

/// A server with its configuration.
#[derive(Clone)]
struct Asked {
    name: String,
    config: OllamaConfig,
    /// The context of the model, as the registry has it.
    context_tokens: Option<u32>,
    settings: ModelSettings,
    transport: SharedTransport,
}

impl Asked {
    fn wire(&self) -> Ollama {
        let wire = self.config.wire().with_settings(&self.settings);
        match self.context_tokens {
            Some(tokens) => wire.with_context_tokens(tokens),
            None => wire,
        }
    }

    fn provider(&self, wire: Ollama) -> SharedProvider {
        Arc::new(Http::new(wire, Arc::clone(&self.transport)).with_name(&self.name))
    }

    /// Probes the enforcement of the server, unless a result for this version and this model is cached.
    async fn probe(&self, fresh: bool) -> Result<Probed, Fault> {
        let wire = self.wire();
        let identity = wire.identity(&*self.transport).await?;
        // Without a version, a result could belong to another one, so it is not cached.
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

    /// Returns the part of the configuration that the result depends on, without secrets.
    fn distinguishing(&self) -> OllamaConfig {
        OllamaConfig { api_key_env: None, headers: BTreeMap::new(), ..self.config.clone() }
    }
}

/// Returns a client that manages the models of the server of a section. It uses the transport of the section, with its TLS, key,
/// headers, proxy and time limits. The section needs no model.
///
/// # Errors
/// [`ConfigError`] if the section's kind is not `ollama`, or its address or key is invalid.
///
/// ```
/// use formwork::{config::Config, providers::ollama_admin};
///
/// let config = Config::from_toml("[providers.a]\nkind = \"ollama\"\nmodel = \"qwen3:8b\"")?;
/// let admin = ollama_admin(config.section("a")?)?;
/// # drop(admin);
/// # Ok::<(), formwork::config::ConfigError>(())
/// ```
pub fn ollama_admin(section: &Section) -> Result<Admin, ConfigError> {
    let config = configured(&section.clone().with_default("model", "none"))?;
    Ok(Admin::new(transport(section, &server(&config))?))
}

fn server(config: &OllamaConfig) -> Server {
    Server::new(&config.base_url, Auth::BEARER)
        .with_key_env(config.api_key_env.as_deref())
        .with_headers(&config.headers)
        .with_own_address("https://ollama.com")
}

/// Reads a section. The default server is that of the environment variable `OLLAMA_HOST`.
fn configured(section: &Section) -> Result<OllamaConfig, ConfigError> {
    /// The environment variable of Ollama's own command.
    const HOST: &str = "OLLAMA_HOST";

    match variable(HOST) {
        Some(host) => {
            let source = format!("the environment variable {HOST}");
            section.clone().with_default_from(&source, "base_url", &base_url_of_host(&host)).read()
        }
        None => section.read(),
    }
}
