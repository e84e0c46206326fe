use formwork_cohere::{CohereConfig, DEFAULT_KEY_ENV, DEFAULT_URL, EXAMPLE_MODEL};
use formwork_wire::Auth;

use super::hosted::Hosted;
use super::server::Server;
use super::{Access, Kind, Made};
use crate::config::{ConfigError, Section};

pub(super) fn kind() -> Kind {
    Kind::of::<CohereConfig>("cohere", "Command models, over Cohere's chat API", make)
        .with_access(Access::new(DEFAULT_KEY_ENV).with_example(EXAMPLE_MODEL))
}

fn make(section: &Section) -> Result<Made, ConfigError> {
    let mut config: CohereConfig = section.read()?;
    if let Some(row) = section.registry().lookup(&format!("cohere/{}", config.model)) {
        config.temperature = config.temperature.or(Some(row.capabilities().temperature));
    }
    let wire = config.wire().map_err(|message| section.error(message))?.with_settings(&section.settings());
    let server = Server::new(&config.base_url, Auth::BEARER)
        .with_key_env(config.key_env())
        .with_headers(&config.headers);
    let made = Hosted { wire, server, model: config.model }.make(section)?;
    Ok(made.with_default_address(DEFAULT_URL))
}
