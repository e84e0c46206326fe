use std::sync::Arc;

use formwork_core::{Capabilities, Layer, Lower, Price, Provider, SharedProvider, Target, Tighten};

use formwork_dialect::Dialects;

use crate::ObservationStore;

/// A provider as an extractor asks it: in which dialects, and at what price.
///
/// A provider alone becomes one by `into()`, with the dialects that its capabilities call for.
///
/// ```
/// use formwork_core::Price;
/// use formwork_extract::Backend;
/// use formwork_testkit::Scripted;
/// use std::sync::Arc;
///
/// // 0.15 and 0.60 US dollars for a million tokens.
/// let backend = Backend::from(Arc::new(Scripted::new(["{}"]))).with_price(Price { input: 150_000, output: 600_000 });
/// assert_eq!(backend.name(), "scripted");
/// assert!(backend.capabilities().temperature);
/// ```
#[derive(Debug, Clone)]
pub struct Backend {
    pub(crate) provider: SharedProvider,
    name: Option<String>,
    modes: Vec<Arc<dyn Lower>>,
    dialects: Dialects,
    price: Option<Price>,
    tighten: Tighten,
    default_max_tokens: Option<u32>,
    identity: Option<String>,
    store: Option<ObservationStore>,
}

impl Backend {
    /// This provider, under its own name.
    pub fn new(provider: SharedProvider) -> Self {
        Self {
            provider,
            name: None,
            modes: Vec::new(),
            dialects: Dialects::builtin(),
            price: None,
            tighten: Tighten::default(),
            default_max_tokens: None,
            identity: None,
            store: None,
        }
    }

    /// Sets its name in the ledger (default: the provider's), for two backends on one provider.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Adds a dialect to ask it in, instead of the default ones. The first one is used until the provider refuses the
    /// schema, then the next; one that proves to ignore the schema is asked in the next one that promises less.
    #[must_use]
    pub fn with_mode(mut self, lower: Arc<dyn Lower>) -> Self {
        self.modes.push(lower);
        self
    }

    /// Sets the dialects, the strictest first, in place of all others (default: those that its capabilities name): for callers
    /// who decide how a model is asked, whatever it would take.
    #[must_use]
    pub fn with_modes(mut self, modes: impl IntoIterator<Item = Arc<dyn Lower>>) -> Self {
        self.modes = modes.into_iter().collect();
        self
    }

    /// Sets the table that the names of dialects in the provider's capabilities are looked up in (default: the dialects of
    /// `formwork-dialect`).
    #[must_use]
    pub fn with_dialects(mut self, dialects: Dialects) -> Self {
        self.dialects = dialects;
        self
    }

    /// Wraps its provider in this layer (default: none).
    #[must_use]
    pub fn with_layer(mut self, layer: &dyn Layer) -> Self {
        self.provider = layer.wrap(self.provider);
        self
    }

    /// The provider.
    pub const fn provider(&self) -> &SharedProvider {
        &self.provider
    }

    /// The dialects that it is asked in, the strictest first.
    pub fn modes(&self) -> Vec<Arc<dyn Lower>> {
        if self.modes.is_empty() {
            self.dialects.modes(self.provider.capabilities())
        } else {
            self.modes.clone()
        }
    }

    /// Sets the price of its tokens (default: unknown, which excludes limits on money).
    #[must_use]
    pub const fn with_price(mut self, price: Price) -> Self {
        self.price = Some(price);
        self
    }

    /// Returns the price of its tokens, if it is known.
    pub const fn price(&self) -> Option<Price> {
        self.price
    }

    /// Its name in the ledger.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(self.provider.name())
    }

    /// Returns the promises of its provider.
    pub fn capabilities(&self) -> &Capabilities {
        self.provider.capabilities()
    }

    /// Sets which valid answers lowering may exclude for this target (default: [`Tighten::Closed`]); see
    /// [`Target::with_tighten`].
    #[must_use]
    pub const fn with_tighten(mut self, tighten: Tighten) -> Self {
        self.tighten = tighten;
        self
    }

    /// Sets the limit of tokens for answers that the caller sets none for (default: that of the
    /// [provider](Capabilities::default_max_tokens)).
    #[must_use]
    pub const fn with_default_max_tokens(mut self, tokens: u32) -> Self {
        self.default_max_tokens = Some(tokens);
        self
    }

    /// Sets what tells this target apart wherever it is configured: its address and model (default: none).
    #[must_use]
    pub fn with_identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = Some(identity.into());
        self
    }

    /// Sets the store of extractors that ask this target and are given none (default: each has one of its own).
    #[must_use]
    pub fn with_observation_store(mut self, store: ObservationStore) -> Self {
        self.store = Some(store);
        self
    }

    /// Returns the store that it brings for extractors, if any.
    pub const fn observation_store(&self) -> Option<&ObservationStore> {
        self.store.as_ref()
    }

    pub(crate) fn target(&self) -> Target {
        let mut capabilities = self.capabilities().clone();
        capabilities.default_max_tokens = self.default_max_tokens.or(capabilities.default_max_tokens);
        let mut target = Target::new(self.name(), capabilities).with_tighten(self.tighten);
        if let Some(price) = self.price {
            target = target.with_price(price);
        }
        if let Some(identity) = &self.identity {
            target = target.with_identity(identity);
        }
        self.modes().into_iter().fold(target, Target::with_mode)
    }
}

impl From<SharedProvider> for Backend {
    fn from(provider: SharedProvider) -> Self {
        Self::new(provider)
    }
}

impl<P: Provider + 'static> From<Arc<P>> for Backend {
    fn from(provider: Arc<P>) -> Self {
        Self::new(provider)
    }
}
