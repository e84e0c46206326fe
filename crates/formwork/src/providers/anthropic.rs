use formwork_anthropic::{
    Anthropic, AnthropicBatches, AnthropicConfig, DEFAULT_KEY_ENV, DEFAULT_URL, EXAMPLE_MODEL, Mode, Thinking,
};
use formwork_dialect::registry::{Entry, NativeMode};
use formwork_wire::Wire as _;

use super::hosted::Hosted;
use super::raw::Protocol;
use super::server::Server;
use super::{Access, Kind, Made};
use crate::config::{ConfigError, Section};

pub(super) fn kind() -> Kind {
    Kind::of::<AnthropicConfig>("anthropic", "Claude models, over Anthropic's Messages API", make)
        .with_access(Access::new(DEFAULT_KEY_ENV).with_example(EXAMPLE_MODEL))
        .with_raw(|section| open(section)?.raw(section, Protocol::Anthropic).map(Some))
        .with_batch(|section| open(section)?.batch(section, AnthropicBatches::new).map(Some))
}

fn make(section: &Section) -> Result<Made, ConfigError> {
    let hosted = open(section)?;
    let own = hosted.server.own_address.clone().unwrap_or_default();
    let made = hosted.make(section)?.with_default_address(&own);
    Ok(match own == DEFAULT_URL {
        true => made,
        false => made.with_system("gcp.vertex_ai").with_vendor("vertex_ai"),
    })
}

fn open(section: &Section) -> Result<Hosted<Anthropic>, ConfigError> {
    let mut config: AnthropicConfig =
        section.clone().with_variable("base_url", "ANTHROPIC_BASE_URL").read()?;
    let own = AnthropicConfig { base_url: DEFAULT_URL.to_owned(), ..config.clone() }.base_url();
    let server = Server::new(config.base_url(), config.auth())
        .with_key_env(config.key_env())
        .with_headers(&config.headers)
        .with_own_address(own);
    let row = section.registry().lookup(&format!("anthropic/{}", config.model.replace('@', "-")));
    let model = config.model.clone();
    let settings = section.settings();
    let budget = |budget_tokens| Thinking::Budget { budget_tokens };
    config.thinking = config.thinking.or(settings.reasoning_tokens.map(budget));
    let wire = promised(config, row).map_err(|message| section.error(message))?.with_settings(&settings);
    Ok(Hosted { wire, server, model })
}

/// Returns the protocol with the registry's facts about the model, for settings that the configuration leaves out. A
/// model without a row gets schemas, and no temperature.
fn promised(mut config: AnthropicConfig, row: Option<&Entry>) -> Result<Anthropic, String> {
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
    capabilities.required_tools &= row.forced_tool;
    capabilities.context_tokens = known.context_tokens;
    capabilities.input_tokens = known.input_tokens;
    capabilities.output_tokens = known.output_tokens;
    if row.dialect.is_some() || row.native == NativeMode::None {
        capabilities.enforcement = known.enforcement;
        capabilities.dialects = known.dialects;
    }
    Ok(wire.with_capabilities(capabilities))
}
