use formwork_bedrock::BedrockConfig;
use formwork_wire::Auth;

use super::hosted::Hosted;
use super::server::Server;
use super::{Kind, Made};
use crate::config::{ConfigError, Section};

pub(super) fn kind() -> Kind {
    Kind::of::<BedrockConfig>("bedrock", "models on Amazon Bedrock, over its Converse API", make)
}

fn make(section: &Section) -> Result<Made, ConfigError> {
    let mut config: BedrockConfig = section.clone().with_variable("region", "AWS_REGION").read()?;
    // The models of other vendors have their own names in the registry.
    if let Some(row) = section.registry().lookup(&format!("bedrock/{}", config.model)) {
        config.temperature = config.temperature.or(Some(row.capabilities().temperature));
        config.prefill = config.prefill.or(Some(row.prefill));
    }
    let wire = config.wire().map_err(|message| section.error(message))?.with_settings(&section.settings());
    let own = BedrockConfig { base_url: None, ..config.clone() }.address();
    let server = Server::new(config.address(), Auth::BEARER)
        .with_key_env(config.key_env())
        .with_headers(&config.headers)
        .with_aws(&config.region, config.profile.clone())
        .with_own_address(&own);
    let made = Hosted { wire, server, model: config.model }.make(section)?;
    Ok(made.with_system("aws.bedrock").with_vendor("bedrock").with_default_address(&own))
}
