use std::sync::Arc;

use formwork_gemini::{Config, Gemini, Preset};
use formwork_wire::Http;
use schemars::SchemaGenerator;

use super::http::{Server, transport};
use super::promises::{is_possible, refused};
use super::{Kind, Made};
use crate::config::{ConfigError, Section};

/// The vendor's name in the model registry.
const VENDOR: &str = "gemini";

/// The names in OpenTelemetry's conventions for the Gemini API, and for Vertex AI.
const SYSTEMS: [&str; 2] = ["gcp.gemini", "gcp.vertex_ai"];

pub(super) fn kind() -> Kind {
    let schema = SchemaGenerator::default().into_root_schema_for::<Config>().to_value();
    Kind::new("gemini", "Google's generateContent API, of AI Studio or of Vertex AI", schema, make)
}

fn make(section: &Section) -> Result<Made, ConfigError> {
    let config = promised(configured(section)?, section);
    config.dialects.iter().flatten().try_for_each(|name| section.dialect(name).map(|_| ()))?;
    let resolve = |config: &Config| config.resolve().map_err(|error| section.error(error.to_string()));
    let resolved = resolve(&config)?;
    let server = Server {
        base_url: &resolved.base_url,
        auth: resolved.auth,
        api_key_env: resolved.api_key_env.as_deref(),
        headers: &config.headers,
    };
    let provider = Http::new(resolved.wire, transport(section, &server)?).with_name(&section.name);
    let usual = resolve(&Config { base_url: None, ..config.clone() })?.base_url;
    let address = Some(resolved.base_url).filter(|url| *url != usual);
    let system = SYSTEMS[usize::from(config.preset == Preset::Vertex)].to_owned();
    Ok(Made { provider: Arc::new(provider), system, model: config.model, address, probe: None })
}

/// Reads a section. Google's own environment variables supply absent settings.
fn configured(section: &Section) -> Result<Config, ConfigError> {
    let mut section = section.clone();
    let variables: &[(&str, &str)] = match section.read::<Config>()?.preset {
        Preset::Vertex => &[("project", "GOOGLE_CLOUD_PROJECT"), ("location", "GOOGLE_CLOUD_LOCATION")],
        _ => &[("base_url", "GOOGLE_GEMINI_BASE_URL")],
    };
    for (field, variable) in variables {
        if let Some(value) = super::variable(variable) {
            let source = format!("the environment variable {variable}");
            section = section.with_default_from(&source, field, &value);
        }
    }
    let mut config: Config = section.read()?;
    if config.preset == Preset::Gemini
        && config.api_key_env.is_none()
        && super::variable("GEMINI_API_KEY").is_none()
        && super::variable("GOOGLE_API_KEY").is_some()
    {
        config.api_key_env = Some("GOOGLE_API_KEY".to_owned());
    }
    Ok(config)
}

/// Returns the configuration with the registry's facts about the model, for absent settings. Only rows of the vendor's
/// own models choose the dialects, because another model is behind a proxy.
fn promised(mut config: Config, section: &Section) -> Config {
    let Some(row) = section.registry().lookup(&format!("{VENDOR}/{}", config.model)) else { return config };
    let known = row.capabilities();
    let is_own = row.provider == VENDOR;
    if is_own && config.dialects.is_none() {
        let possible = |name: &&str| is_possible(name, row, section.dialects());
        config.dialects =
            Some(Gemini::DIALECTS.iter().copied().filter(possible).map(str::to_owned).collect());
    }
    let own = &mut config.capabilities;
    own.temperature = own.temperature.or_else(|| refused(known.temperature));
    own.top_p = own.top_p.or_else(|| refused(known.top_p));
    if is_own {
        own.seed = own.seed.or_else(|| refused(known.seed));
    }
    own.context_tokens = own.context_tokens.or(known.context_tokens);
    own.output_tokens = own.output_tokens.or(known.output_tokens);
    config
}
