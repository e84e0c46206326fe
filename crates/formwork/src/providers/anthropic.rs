use std::sync::Arc;

use formwork_anthropic::{API_KEY, Anthropic, Config, DEFAULT_URL, Mode};
use formwork_dialect::registry::{Entry, NativeMode};
use formwork_wire::{Http, Wire as _};
use schemars::SchemaGenerator;

use super::http::{MAX_RESULTS, Server, limited, transport};
use super::raw::{BatchServer, Protocol, Raw};
use super::{Kind, Made};
use crate::config::{ConfigError, Section};

pub(super) fn kind() -> Kind {
    let schema = SchemaGenerator::default().into_root_schema_for::<Config>().to_value();
    Kind::new("anthropic", "Claude models, over Anthropic's Messages API", schema, make)
}

/// Reads a section. Where it names no server, that is the one that the environment variable `ANTHROPIC_BASE_URL` names.
fn configured(section: &Section) -> Result<Config, ConfigError> {
    /// The variable of Anthropic's own libraries.
    const BASE_URL: &str = "ANTHROPIC_BASE_URL";

    match super::variable(BASE_URL) {
        Some(url) => {
            let source = format!("the environment variable {BASE_URL}");
            section.clone().with_default_from(&source, "base_url", &url).read()
        }
        None => section.read(),
    }
}

fn server(config: &Config) -> Server<'_> {
    Server {
        base_url: config.base_url(),
        auth: API_KEY,
        api_key_env: config.key_env(),
        headers: &config.headers,
    }
}

/// Returns the protocol of a section, with the known facts about the model.
fn wire(section: &Section, config: &Config) -> Result<Anthropic, ConfigError> {
    let row = section.registry().lookup(&format!("anthropic/{}", config.model));
    promised(config.clone(), row).map_err(|message| section.error(message))
}

/// Returns the batch API of a section.
pub(super) fn batch(section: &Section) -> Result<BatchServer, ConfigError> {
    let config = configured(section)?;
    let wire = Arc::new(wire(section, &config)?.with_stream(false));
    let transport = limited(section, &server(&config), Some(MAX_RESULTS))?;
    Ok(BatchServer { protocol: Protocol::Anthropic, wire, transport })
}

pub(super) fn raw(section: &Section) -> Result<Raw, ConfigError> {
    let config = configured(section)?;
    let transport = transport(section, &server(&config))?;
    Ok(Raw { protocol: Protocol::Anthropic, transport, model: config.model })
}

fn make(section: &Section) -> Result<Made, ConfigError> {
    let config = configured(section)?;
    let wire = wire(section, &config)?;
    let provider = Http::new(wire, transport(section, &server(&config))?).with_name(&section.name);
    let address = Some(config.base_url().to_owned()).filter(|url| url != DEFAULT_URL);
    let system = "anthropic".to_owned();
    Ok(Made { provider: Arc::new(provider), system, model: config.model, address, probe: None })
}

/// Returns the protocol with the registry's facts about the model, for settings that the configuration leaves out. A
/// model without a row gets schemas, and no temperature.
fn promised(mut config: Config, row: Option<&Entry>) -> Result<Anthropic, String> {
    let Some(row) = row else { return config.wire() };
    let known = row.capabilities();
    let mode = if row.native == NativeMode::Tool { Mode::Tool } else { Mode::Schema };
    config.mode = config.mode.or(Some(mode));
    config.strict = config.strict.or(Some(row.strict));
    config.temperature = config.temperature.or(Some(known.temperature));
    if config.mode == Some(Mode::Tool) && !row.forced_tool {
        return Err(format!(
            "`{}` cannot be forced to call a tool: leave out `mode = \"tool\"`",
            config.model
        ));
    }
    if config.prefill == Some(true) && !row.prefill {
        return Err(format!(
            "`{}` refuses a last message of the assistant: leave out `prefill = true`",
            config.model
        ));
    }
    config.prefill = config.prefill.or(Some(row.prefill));
    let wire = config.wire()?;
    let mut capabilities = wire.capabilities().clone();
    capabilities.context_tokens = known.context_tokens;
    capabilities.output_tokens = known.output_tokens;
    if row.dialect.is_some() || row.native == NativeMode::None {
        capabilities.enforcement = known.enforcement;
        capabilities.dialects = known.dialects;
    }
    Ok(wire.with_capabilities(capabilities))
}
