use std::sync::Arc;

use formwork_bedrock::Config;
use formwork_wire::{Auth, Http};
use schemars::SchemaGenerator;

use super::http::{Server, transport};
use super::{Kind, Made};
use crate::config::{ConfigError, Section};

pub(super) fn kind() -> Kind {
    let schema = SchemaGenerator::default().into_root_schema_for::<Config>().to_value();
    Kind::new("bedrock", "models on Amazon Bedrock, over its Converse API", schema, make)
}

fn make(section: &Section) -> Result<Made, ConfigError> {
    /// The variable of Amazon's own libraries.
    const REGION: &str = "AWS_REGION";

    let mut config: Config = match super::variable(REGION) {
        Some(region) => {
            let source = format!("the environment variable {REGION}");
            section.clone().with_default_from(&source, "region", &region).read()?
        }
        None => section.read()?,
    };
    // The models of other vendors have their own names in the registry.
    if let Some(row) = section.registry().lookup(&format!("bedrock/{}", config.model)) {
        config.temperature = config.temperature.or(Some(row.capabilities().temperature));
        config.prefill = config.prefill.or(Some(row.prefill));
    }
    let wire = config.wire().map_err(|message| section.error(message))?;
    let base_url = config.address();
    let server = Server {
        base_url: &base_url,
        auth: Auth::BEARER,
        api_key_env: config.key_env(),
        headers: &config.headers,
    };
    let provider = Http::new(wire, transport(section, &server)?).with_name(&section.name);
    let address = config.base_url.clone();
    let system = "aws.bedrock".to_owned();
    Ok(Made { provider: Arc::new(provider), system, model: config.model, address, probe: None })
}
