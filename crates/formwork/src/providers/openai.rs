use std::sync::Arc;

use formwork_openai::{Api, Config, Resolved, presets};
use formwork_wire::Http;
use schemars::SchemaGenerator;

use super::http::{MAX_RESULTS, Server, limited, transport};
use super::promises::promised;
use super::raw::{BatchServer, Protocol, Raw};
use super::{Kind, Made};
use crate::config::{ConfigError, Section};

/// Returns the kind of OpenAI, and one for each vendor of the presets.
pub(super) fn kinds() -> Vec<Kind> {
    let schema = SchemaGenerator::default().into_root_schema_for::<Config>().to_value();
    presets()
        .iter()
        .map(|preset| {
            let name = preset.name.clone();
            let about = match preset.name.as_str() {
                "openai" => {
                    "Chat Completions, of OpenAI or any OpenAI-compatible server, or the Responses API"
                        .to_owned()
                }
                name => format!("Chat Completions with the values of {name}"),
            };
            Kind::new(preset.name.clone(), about, schema.clone(), move |section| make(section, &name))
        })
        .collect()
}

/// Returns a section with the values of the preset of its kind, of the environment, and its settings.
fn configured(section: &Section, preset: &str) -> Result<(Section, Config), ConfigError> {
    /// The variable of OpenAI's own libraries.
    const BASE_URL: &str = "OPENAI_BASE_URL";

    let mut section = section.clone();
    if preset != "openai" {
        section = section.with_default("preset", preset);
    } else if let Some(url) = super::variable(BASE_URL)
        && section.read::<Config>()?.preset.is_none_or(|preset| preset == "openai")
    {
        section =
            section.with_default_from(&format!("the environment variable {BASE_URL}"), "base_url", &url);
    }
    let config = section.read()?;
    Ok((section, config))
}

/// Returns the section with its configuration, resolved with the known facts about the model.
fn resolved(section: &Section, preset: &str) -> Result<(Section, Config, Resolved), ConfigError> {
    let (section, config) = configured(section, preset)?;
    let resolve = |config: &Config| config.resolve().map_err(|error| section.error(error.to_string()));
    let resolved = resolve(&config)?;
    let name = config.preset.as_deref().unwrap_or(preset);
    let resolved = match promised(&config, name, &resolved, &section) {
        Some(config) => resolve(&config)?,
        None => resolved,
    };
    config.dialects.iter().flatten().try_for_each(|name| section.dialect(name).map(|_| ()))?;
    Ok((section, config, resolved))
}

/// Returns the batch API of a section; `None` for servers of other vendors.
pub(super) fn batch(section: &Section) -> Result<Option<BatchServer>, ConfigError> {
    let (section, config, resolved) = resolved(section, "openai")?;
    if resolved.name != "openai" {
        return Ok(None);
    }
    let server = Server {
        base_url: &resolved.base_url,
        auth: resolved.auth,
        api_key_env: resolved.api_key_env.as_deref(),
        headers: &resolved.headers,
    };
    let protocol = if config.api == Api::Responses { Protocol::Responses } else { Protocol::OpenAi };
    let transport = limited(&section, &server, Some(MAX_RESULTS))?;
    Ok(Some(BatchServer { protocol, wire: Arc::new(resolved.wire.with_stream(false)), transport }))
}

pub(super) fn raw(section: &Section, preset: &str) -> Result<Raw, ConfigError> {
    let (section, config) = configured(section, preset)?;
    let resolved = config.resolve().map_err(|error| section.error(error.to_string()))?;
    let server = Server {
        base_url: &resolved.base_url,
        auth: resolved.auth,
        api_key_env: resolved.api_key_env.as_deref(),
        headers: &resolved.headers,
    };
    let protocol = if config.api == Api::Responses { Protocol::Responses } else { Protocol::OpenAi };
    Ok(Raw { protocol, transport: transport(&section, &server)?, model: config.model })
}

fn make(section: &Section, preset: &str) -> Result<Made, ConfigError> {
    let (section, config, resolved) = resolved(section, preset)?;
    let server = Server {
        base_url: &resolved.base_url,
        auth: resolved.auth,
        api_key_env: resolved.api_key_env.as_deref(),
        headers: &resolved.headers,
    };
    let provider = Http::new(resolved.wire, transport(&section, &server)?).with_name(&section.name);
    let usual = Config { base_url: None, ..config.clone() }.resolve().map(|usual| usual.base_url);
    let address = Some(resolved.base_url).filter(|url| usual.ok().as_ref() != Some(url));
    let system = resolved.name;
    Ok(Made { provider: Arc::new(provider), system, model: config.model, address, probe: None })
}
