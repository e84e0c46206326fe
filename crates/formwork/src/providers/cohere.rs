use std::sync::Arc;

use formwork_cohere::{Config, DEFAULT_URL};
use formwork_wire::{Auth, Http};
use schemars::SchemaGenerator;

use super::http::{Server, transport};
use super::{Kind, Made};
use crate::config::{ConfigError, Section};

pub(super) fn kind() -> Kind {
    let schema = SchemaGenerator::default().into_root_schema_for::<Config>().to_value();
    Kind::new("cohere", "Command models, over Cohere's chat API", schema, make)
}

fn make(section: &Section) -> Result<Made, ConfigError> {
    let mut config: Config = section.read()?;
    if let Some(row) = section.registry().lookup(&format!("cohere/{}", config.model)) {
        config.temperature = config.temperature.or(Some(row.capabilities().temperature));
    }
    let wire = config.wire().map_err(|message| section.error(message))?;
    let server = Server {
        base_url: &config.base_url,
        auth: Auth::BEARER,
        api_key_env: config.key_env(),
        headers: &config.headers,
    };
    let provider = Http::new(wire, transport(section, &server)?).with_name(&section.name);
    let address = Some(config.base_url.clone()).filter(|url| url != DEFAULT_URL);
    let system = "cohere".to_owned();
    Ok(Made { provider: Arc::new(provider), system, model: config.model, address, probe: None })
}
