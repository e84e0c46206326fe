use std::sync::Arc;

use formwork_core::{
    Capabilities, Layer, Lower, Price, Provider, Retries, RetryPolicy, Rules, Sampling, SharedProvider,
    Target, Tighten,
};

use formwork_dialect::Dialects;

use crate::{Budget, ObservationStore, Rotation};

/// A provider with its output modes, price and name, as an extractor uses it.
///
/// `into()` converts a provider into a backend with the output modes that its capabilities declare.
///
/// ```
/// use formwork_core::Price;
/// use formwork_extract::Backend;
/// use formwork_testkit::Scripted;
/// use std::sync::Arc;
///
/// // 0.15 and 0.60 US dollars per million tokens.
/// let backend = Backend::from(Arc::new(Scripted::new(["{}"]))).with_price(Price::new(150_000, 600_000));
/// assert_eq!(backend.name(), "scripted");
/// assert!(backend.capabilities().temperature);
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Backend {
    pub(crate) provider: SharedProvider,
    name: Option<String>,
    modes: Vec<Arc<dyn Lower>>,
    dialects: Dialects,
    price: Option<Price>,
    tighten: Tighten,
    default_max_tokens: Option<u32>,
    reasoning_tokens: Option<u32>,
    identity: Option<String>,
    store: Option<ObservationStore>,
    pub(crate) rotation: Option<Rotation>,
    budget: Option<Budget>,
    retries: Retries,
    sampling: Sampling,
    pub(crate) rules: Rules,
    pub(crate) retry_policy: Option<Arc<dyn RetryPolicy>>,
}

impl Backend {
    /// Returns a backend of a provider, under the name of the provider.
    pub fn new(provider: SharedProvider) -> Self {
        Self {
            provider,
            name: None,
            modes: Vec::new(),
            dialects: Dialects::builtin(),
            price: None,
            tighten: Tighten::default(),
            default_max_tokens: None,
            reasoning_tokens: None,
            identity: None,
            store: None,
            rotation: None,
            budget: None,
            retries: Retries::default(),
            sampling: Sampling::default(),
            rules: Rules::default(),
            retry_policy: None,
        }
    }

    /// Adds an output mode (default: the modes that the capabilities of the provider declare). A run starts in the first mode.
    /// It changes to the next mode if the provider rejects the schema, and to the next weaker mode if the provider turns
    /// out to ignore the schema.
    pub fn with_mode(mut self, lower: Arc<dyn Lower>) -> Self {
        self.modes.push(lower);
        self
    }

    /// Sets the output modes, the strictest first, and replaces all others (default: the modes that the capabilities of the
    /// provider declare).
    pub fn with_modes(mut self, modes: impl IntoIterator<Item = Arc<dyn Lower>>) -> Self {
        self.modes = modes.into_iter().collect();
        self
    }

    /// Wraps the provider in a layer (default: none). The last layer that was added is the outermost one.
    pub fn with_layer(mut self, layer: &dyn Layer) -> Self {
        self.provider = layer.wrap(self.provider);
        self
    }

    /// Sets the number and the delays of retries after failed calls of this backend (default: those of the retry policy). Settings
    /// that are absent keep the values of an earlier call.
    pub fn with_retries(mut self, retries: Retries) -> Self {
        self.retries = retries.or(self.retries);
        self
    }

    formwork_core::setters! {
        /// Sets the name in the ledger (default: the name of the provider), to tell two backends of one provider apart.
        pub fn with_name(Some(name): impl Into<String>);
        /// Sets the table of dialects for the names in the capabilities of the provider (default: the dialects of
        /// `formwork-dialect`).
        pub fn with_dialects(dialects: Dialects);
        /// Sets the rules that contracts can name (default: none).
        pub fn with_rules(rules: Rules);
        /// Sets the retry policy of extractors whose first target is this backend, if they have no policy of their own type (default: none).
        pub fn with_retry_policy(Some(retry_policy): Arc<dyn RetryPolicy>);
        /// Sets the price of tokens (default: unknown; then a run with a limit in US dollars does not call this backend).
        pub const fn with_price(Some(price): Price);
        /// Sets the valid answers that lowering may exclude for this target (default: [`Tighten::Closed`]); see
        /// [`Target::with_tighten`].
        pub const fn with_tighten(tighten: Tighten);
        /// Sets the token limit of answers for which the caller sets no limit (default: the limit of the
        /// [provider](Capabilities::default_max_tokens)).
        pub const fn with_default_max_tokens(Some(default_max_tokens): u32);
        /// Sets the number of tokens that the model may need to reason, for a token limit that a budget lowers (default: that of the
        /// [provider](Capabilities::reasoning_tokens), which has precedence).
        pub const fn with_reasoning_tokens(Some(reasoning_tokens): u32);
        /// Sets the identity of the target in an [`ObservationStore`], for example its address and model (default: none; the name
        /// is used instead).
        pub fn with_identity(Some(identity): impl Into<String>);
        /// Sets the observation store for extractors that have no other one (default: each extractor has its own store).
        pub fn with_observation_store(Some(store): ObservationStore);
        /// Sets the rotation that selects the first target of each run (default: none, every run starts with the first target).
        /// Give each backend of an extractor a clone of the same rotation. If they differ, the first one applies.
        pub fn with_rotation(Some(rotation): Rotation);
        /// Sets a budget for all calls of this backend, in addition to the budgets of the extractors (default: none). Extractors
        /// that use clones of this backend share the budget.
        pub fn with_budget(Some(budget): Budget);
        /// Sets the parameters of sampling of calls for which neither the policy nor the input sets one (default: none).
        pub const fn with_sampling(sampling: Sampling);
    }

    /// Returns the provider, including its layers.
    pub const fn provider(&self) -> &SharedProvider {
        &self.provider
    }

    /// Returns the output modes, the strictest first.
    pub fn modes(&self) -> Vec<Arc<dyn Lower>> {
        if self.modes.is_empty() {
            self.dialects.modes(self.provider.capabilities())
        } else {
            self.modes.clone()
        }
    }

    /// Returns the price of tokens, if it is known.
    pub const fn price(&self) -> Option<Price> {
        self.price
    }

    /// Returns the name in the ledger.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(self.provider.name())
    }

    /// Returns the capabilities of the provider.
    pub fn capabilities(&self) -> &Capabilities {
        self.provider.capabilities()
    }

    /// Returns the identity of the target in an [`ObservationStore`], if it has one.
    pub fn identity(&self) -> Option<&str> {
        self.identity.as_deref()
    }

    /// Returns the observation store for extractors, if any.
    pub const fn observation_store(&self) -> Option<&ObservationStore> {
        self.store.as_ref()
    }

    /// Returns the budget of this backend, if any.
    pub const fn budget(&self) -> Option<&Budget> {
        self.budget.as_ref()
    }

    pub(crate) fn target(&self) -> Target {
        let mut capabilities = self.capabilities().clone();
        capabilities.default_max_tokens = self.default_max_tokens.or(capabilities.default_max_tokens);
        capabilities.reasoning_tokens = capabilities.reasoning_tokens.or(self.reasoning_tokens);
        let mut target = Target::new(self.name(), capabilities)
            .with_tighten(self.tighten)
            .with_retries(self.retries.clone())
            .with_sampling(self.sampling);
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
