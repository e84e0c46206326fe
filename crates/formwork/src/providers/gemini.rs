use formwork_gemini::{DEFAULT_KEY_ENV, EXAMPLE_MODEL, Gemini, GeminiConfig, Preset};

use super::hosted::Hosted;
use super::promises::{is_possible, restrict};
use super::server::Server;
use super::{Access, Kind, Made};
use crate::config::{ConfigError, Section, variable};

/// The vendor's name in the model registry.
const VENDOR: &str = "gemini";

pub(super) fn kind() -> Kind {
    Kind::of::<GeminiConfig>(VENDOR, "Google's generateContent API, of AI Studio or of Vertex AI", make)
        .with_access(Access::new(DEFAULT_KEY_ENV).with_example(EXAMPLE_MODEL))
}

fn make(section: &Section) -> Result<Made, ConfigError> {
    let config = promised(configured(section)?, section);
    config.dialects.iter().flatten().try_for_each(|name| section.dialect(name).map(|_| ()))?;
    let resolve = |config: &GeminiConfig| config.resolve().map_err(|error| section.error(error.to_string()));
    let resolved = resolve(&config)?;
    let usual = resolve(&GeminiConfig { base_url: None, ..config.clone() })?.base_url;
    let server = Server::new(resolved.base_url, resolved.auth)
        .with_key_env(resolved.api_key_env.as_deref())
        .with_headers(&config.headers)
        .with_own_address(&usual);
    let vendor = if config.preset == Preset::Vertex { "vertex_ai" } else { VENDOR };
    let wire = resolved.wire.with_settings(&section.settings());
    let made = Hosted { wire, server, model: config.model }.make(section)?;
    // OpenTelemetry's conventions put the cloud before the name of its API.
    Ok(made.with_system(format!("gcp.{vendor}")).with_vendor(vendor).with_default_address(&usual))
}

/// Reads a section. Google's own environment variables supply absent settings.
fn configured(section: &Section) -> Result<GeminiConfig, ConfigError> {
    let mut section = section.clone();
    let variables: &[(&str, &str)] = match section.read::<GeminiConfig>()?.preset {
        Preset::Vertex => &[("project", "GOOGLE_CLOUD_PROJECT"), ("location", "GOOGLE_CLOUD_LOCATION")],
        _ => &[("base_url", "GOOGLE_GEMINI_BASE_URL")],
    };
    for (field, variable) in variables {
        section = section.with_variable(field, variable);
    }
    let mut config: GeminiConfig = section.read()?;
    if config.preset == Preset::Gemini
        && config.api_key_env.is_none()
        && variable(DEFAULT_KEY_ENV).is_none()
        && variable("GOOGLE_API_KEY").is_some()
    {
        config.api_key_env = Some("GOOGLE_API_KEY".to_owned());
    }
    Ok(config)
}

/// Returns the configuration with the registry's facts about the model, for absent settings. Only rows of the vendor's
/// own models choose the dialects, because another model is behind a proxy.
fn promised(mut config: GeminiConfig, section: &Section) -> GeminiConfig {
    let Some(row) = section.registry().lookup(&format!("{VENDOR}/{}", config.model)) else { return config };
    let is_own = row.provider == VENDOR;
    if is_own && config.dialects.is_none() {
        let possible = |name: &&str| is_possible(name, row, section.dialects());
        config.dialects =
            Some(Gemini::DIALECTS.iter().copied().filter(possible).map(str::to_owned).collect());
    }
    restrict(&mut config.capabilities, row, is_own);
    config
}
