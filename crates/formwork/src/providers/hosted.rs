use std::sync::Arc;

use formwork_wire::batch::{BatchApi, SharedBatchApi};
use formwork_wire::{Http, SharedTransport, Wire};

use super::Made;
use super::http::{batch_transport, transport};
use super::raw::{Protocol, Raw};
use super::server::Server;
use crate::config::{ConfigError, Section};

/// A model behind an HTTP server, as a section configures it. A [`Kind`](super::Kind) creates its provider, its pass-through and its
/// batch API from it.
///
/// ```no_run
/// # fn wire(model: &str) -> formwork::openai::OpenAi { formwork::openai::OpenAi::new(model) }
/// use formwork::config::{ConfigError, Section};
/// use formwork::openai::{OpenAi, OpenAiBatches};
/// use formwork::providers::{Hosted, Kind, Protocol, Server};
/// use formwork::wire::Auth;
///
/// /// What a section of this kind says.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Acme {
///     model: String,
/// }
///
/// fn open(section: &Section) -> Result<Hosted<OpenAi>, ConfigError> {
///     let Acme { model } = section.read()?;
///     let server = Server::new("https://api.acme.example/v1", Auth::BEARER).with_key_env(Some("ACME_KEY"));
///     Ok(Hosted { wire: wire(&model), server, model })
/// }
///
/// let kind = Kind::of::<Acme>("acme", "Acme's own API", |section| open(section)?.make(section))
///     .with_raw(|section| open(section)?.raw(section, Protocol::OpenAi).map(Some))
///     .with_batch(|section| open(section)?.batch(section, OpenAiBatches::new).map(Some));
/// assert!(kind.has_batch());
/// ```
#[derive(Debug, Clone)]
pub struct Hosted<W> {
    /// The codec.
    pub wire: W,
    /// The server.
    pub server: Server,
    /// The server's name of the model.
    pub model: String,
}

impl<W: Wire> Hosted<W> {
    /// Returns the provider of the section. Its system is the name of the codec, its address that of the server.
    ///
    /// # Errors
    /// The errors of [`transport`].
    pub fn make(self, section: &Section) -> Result<Made, ConfigError> {
        let (system, transport) = (self.wire.name().to_owned(), transport(section, &self.server)?);
        let provider = Http::new(self.wire, transport).with_name(&section.name);
        Ok(Made::new(Arc::new(provider), system, self.model).with_address(Some(self.server.base_url)))
    }

    /// Returns the server for requests that are forwarded unchanged.
    ///
    /// # Errors
    /// The errors of [`transport`].
    pub fn raw(self, section: &Section, protocol: Protocol) -> Result<Raw, ConfigError> {
        Ok(Raw { protocol, transport: transport(section, &self.server)?, model: self.model })
    }

    /// Returns the batch API that `api` creates from the codec and a transport.
    ///
    /// # Errors
    /// The errors of [`batch_transport`].
    pub fn batch<A: BatchApi + 'static>(
        self,
        section: &Section,
        api: impl FnOnce(W, SharedTransport) -> A,
    ) -> Result<SharedBatchApi, ConfigError> {
        Ok(Arc::new(api(self.wire, batch_transport(section, &self.server)?)))
    }
}
