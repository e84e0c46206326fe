use formwork_core::{Answer, Call, Fault, SharedProvider};
use formwork_layers::{Around, around};
use formwork_openai::{Api, LineBreaks, OpenAi, OpenAiBatches, OpenAiConfig, Resolved, presets};
use formwork_wire::SharedTransport;

use super::hosted::Hosted;
use super::http::transport;
use super::promises::promised;
use super::raw::Protocol;
use super::server::Server;
use super::{Access, Kind, Made};
use crate::config::{ConfigError, Section};

/// The name of the kind and preset of the API's own vendor.
const VENDOR: &str = "openai";

/// The name of the kind and preset of llama.cpp's server.
const LLAMA_SERVER: &str = "llama-server";

/// Returns the kind of OpenAI, and one for each vendor of the presets.
pub(super) fn kinds() -> impl Iterator<Item = Kind> {
    presets().iter().map(|preset| {
        let name = preset.name.as_str();
        let about = match name {
            VENDOR => {
                "Chat Completions, of OpenAI or any OpenAI-compatible server, or the Responses API".to_owned()
            }
            name => format!("Chat Completions of {name}"),
        };
        let kind = Kind::of::<OpenAiConfig>(name, about, |section| make(section, name)).with_raw(|section| {
            let opened = Opened::of(section, name)?;
            opened.hosted.raw(section, opened.protocol).map(Some)
        });
        let kind = match preset.api_key_env.as_str() {
            "" => kind,
            key_env => kind.with_access(Access {
                key_env: key_env.to_owned(),
                example: preset.example.clone(),
                is_host: preset.is_host,
            }),
        };
        if name == VENDOR { kind.with_batch(batch) } else { kind }
    })
}

/// A section of this kind, with the values of its preset and the known facts about the model.
struct Opened {
    hosted: Hosted<OpenAi>,
    protocol: Protocol,
    /// The name of the preset.
    preset: String,
    /// The address of the preset, if it has one.
    usual: Option<String>,
}

impl Opened {
    fn of(section: &Section, preset: &str) -> Result<Self, ConfigError> {
        let section = configured(section, preset)?;
        let config: OpenAiConfig = section.read()?;
        let resolve =
            |config: &OpenAiConfig| config.resolve().map_err(|error| section.error(error.to_string()));
        let resolved = resolve(&config)?;
        let name = config.preset.as_deref().unwrap_or(preset);
        let Resolved { name, wire, base_url, api_key_env, auth, headers } =
            match promised(&config, name, &resolved, &section) {
                Some(config) => resolve(&config)?,
                None => resolved,
            };
        config.dialects.iter().flatten().try_for_each(|name| section.dialect(name).map(|_| ()))?;
        let usual =
            OpenAiConfig { base_url: None, ..config.clone() }.resolve().ok().map(|usual| usual.base_url);
        let server = Server::new(base_url, auth).with_key_env(api_key_env.as_deref()).with_headers(&headers);
        let server = match &usual {
            Some(usual) => server.with_own_address(usual),
            None => server,
        };
        let protocol = if config.api == Api::Responses { Protocol::Responses } else { Protocol::OpenAi };
        let wire = wire.with_settings(&section.settings(), &name);
        let hosted = Hosted { wire, server, model: config.model };
        Ok(Self { hosted, protocol, preset: name, usual })
    }
}

/// Returns a section with the values of the preset of its kind and of the environment as defaults.
fn configured(section: &Section, preset: &str) -> Result<Section, ConfigError> {
    let section = section.clone();
    if preset != VENDOR {
        return Ok(section.with_default("preset", preset));
    }
    let is_own = section.read::<OpenAiConfig>()?.preset.is_none_or(|preset| preset == VENDOR);
    // The variable of OpenAI's own libraries.
    Ok(if is_own { section.with_variable("base_url", "OPENAI_BASE_URL") } else { section })
}

/// Returns the batch API of a section; `None` for servers of other vendors.
fn batch(section: &Section) -> Result<Option<formwork_wire::batch::SharedBatchApi>, ConfigError> {
    let opened = Opened::of(section, VENDOR)?;
    (opened.preset == VENDOR).then(|| opened.hosted.batch(section, OpenAiBatches::new)).transpose()
}

fn make(section: &Section, preset: &str) -> Result<Made, ConfigError> {
    let Opened { mut hosted, preset, usual, .. } = Opened::of(section, preset)?;
    let lines = Lines::of(section, &mut hosted, &preset)?;
    let mut made = hosted.make(section)?.with_system(&preset).with_vendor(preset);
    if let Some(lines) = lines {
        made.provider = around(made.provider, lines);
    }
    Ok(match usual {
        Some(usual) => made.with_default_address(&usual),
        None => made,
    })
}

/// Asks llama.cpp's server for its tokens of line breaks before the first call of a tiny model that needs them.
#[derive(Debug)]
struct Lines {
    tokens: LineBreaks,
    /// The server without the path `/v1`.
    root: SharedTransport,
}

impl Lines {
    /// Returns the layer for a server of llama.cpp; `None` for other servers, and for recorded responses, which have none of its kind.
    fn of(section: &Section, hosted: &mut Hosted<OpenAi>, preset: &str) -> Result<Option<Self>, ConfigError> {
        let is_recorded = section.common.cassette.is_some() || section.common.record.is_some();
        if preset != LLAMA_SERVER || is_recorded {
            return Ok(None);
        }
        let (tokens, mut root) = (LineBreaks::default(), hosted.server.clone());
        let address = root.base_url.trim_end_matches('/');
        root.base_url = address.strip_suffix("/v1").unwrap_or(address).to_owned();
        hosted.wire = hosted.wire.clone().with_line_breaks(tokens.clone());
        Ok(Some(Self { tokens, root: transport(section, &root)? }))
    }
}

impl Around for Lines {
    async fn call(&self, inner: &SharedProvider, call: &Call) -> Result<Answer, Fault> {
        if LineBreaks::concern(call) && !self.tokens.is_known() {
            // Without them the document has more white space. A server that cannot be reached fails the call itself.
            _ = self.tokens.ask(&*self.root).await;
        }
        inner.call(call).await
    }
}
