//! A provider of a section, and the layers that its settings ask for.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use formwork_core::{Capabilities, Effort, Fault, Layer as _, Lower, Price, SharedProvider, Tighten};
use formwork_dialect::registry::{Entry, Reasoning, known_price};
use formwork_dialect::{Dialects, Limited, Tool};
use formwork_extract::{Backend, ObservationStore};
use formwork_layers::{Concurrency, Rate, Stages, Timeout, Tokens, Trace};
use sha2::{Digest as _, Sha256};

use super::probe::{self, Probe, Probed};
use super::retirement;
use crate::config::{Common, ConfigError, Section};

/// A provider of a section, before layers wrap it.
///
/// ```
/// use formwork::{config::Config, providers::{Made, Providers}};
///
/// let config = Config::from_toml("[providers.a]\nkind = \"ollama\"\nmodel = \"qwen3:8b\"")?;
/// let made: Made = Providers::builtin().make(config.section("a")?)?;
/// assert_eq!((made.system.as_str(), made.model.as_str()), ("ollama", "qwen3:8b"));
/// # Ok::<(), formwork::config::ConfigError>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Made {
    /// The provider.
    pub provider: SharedProvider,
    /// The provider's name in OpenTelemetry's conventions: `openai`, `aws.bedrock`.
    pub system: String,
    /// The provider's name in the registry of models: `openai`, `bedrock`.
    pub vendor: String,
    /// The name of the model.
    pub model: String,
    /// The address of the server, if it is not the default of its kind. The vendor's price does not apply to such a
    /// server.
    pub address: Option<String>,
    /// The default address of the kind, if the server has it.
    default_address: Option<String>,
    /// The probe of the server's features; `None` if the kind has none.
    pub probe: Option<Probe>,
    /// The price that the kind knows, if neither the configuration nor the registry has one.
    pub price: Option<Price>,
}

/// Returns a row of the registry as a source, in words.
fn source(row: &Entry) -> String {
    format!("the registry's row `{}`, checked on {}", row.family, row.checked)
}

impl Made {
    /// Creates a provider of a model. `system` is its name in OpenTelemetry's conventions and in the registry of models.
    pub fn new(provider: SharedProvider, system: impl Into<String>, model: impl Into<String>) -> Self {
        let system = system.into();
        let (vendor, model) = (system.clone(), model.into());
        let (address, default_address) = (None, None);
        Self { provider, system, vendor, model, address, default_address, probe: None, price: None }
    }

    /// Creates the provider of a model in this process, which costs nothing.
    pub fn in_process(provider: SharedProvider, model: impl Into<String>) -> Self {
        Self { price: Some(Price::default()), ..Self::new(provider, "formwork-local", model) }
    }

    formwork_core::setters! {
        /// Sets the name in OpenTelemetry's conventions (default: that of [`new`](Self::new)).
        #[must_use]
        pub fn with_system(system: impl Into<String>);
        /// Sets the name in the registry of models (default: the system of [`new`](Self::new)).
        #[must_use]
        pub fn with_vendor(vendor: impl Into<String>);
        /// Sets the address of the server, if it is not the default of its kind (default: none).
        #[must_use]
        pub fn with_address(address: Option<String>);
        /// Sets the probe of the server's features (default: none).
        #[must_use]
        pub fn with_probe(Some(probe): Probe);
    }

    /// Sets the default address of the kind. If the server has it, [`address`](Self::address) is `None`.
    #[must_use]
    pub fn with_default_address(mut self, default: &str) -> Self {
        self.default_address = self.address.take_if(|address| address == default);
        self
    }

    /// Returns the address of the server, which may be the default of its kind; `None` for a model in this process.
    pub fn server_address(&self) -> Option<&str> {
        self.address.as_deref().or(self.default_address.as_deref())
    }

    /// Returns the row of the registry about the model at this vendor.
    fn row<'s>(&self, section: &'s Section) -> Option<&'s Entry> {
        let row = section.registry().lookup(&format!("{}/{}", self.vendor, self.model))?;
        (row.provider == self.vendor).then_some(row)
    }

    /// Returns the price of the model: that of the configuration, else the registry's, if it is asked at its own vendor; a
    /// model in this process costs nothing. `None` if the price is not known.
    pub fn price(&self, section: &Section) -> Option<Price> {
        self.sourced_price(section).map(|(price, _)| price)
    }

    /// Returns the source of [`price`](Self::price) in words: the setting, the row of the registry, the table of prices, or the kind.
    pub fn price_source(&self, section: &Section) -> Option<String> {
        self.sourced_price(section).map(|(_, source)| source)
    }

    /// Returns the source of the output modes in words: the setting, the row of the registry, or the kind.
    pub fn modes_source(&self, section: &Section) -> String {
        match (&section.common, self.row(section)) {
            (Common { prompt_only: true, .. }, _) => "`prompt_only`".to_owned(),
            (Common { modes: Some(_), .. }, _) => "`modes`".to_owned(),
            (_, Some(row)) => source(row),
            (Common { kind, .. }, None) => format!("the kind `{kind}`"),
        }
    }

    fn sourced_price(&self, section: &Section) -> Option<(Price, String)> {
        let set = section.common.price.map(|price| (price, "`price`".to_owned()));
        set.or_else(|| self.known_price(section))
    }

    fn known_price(&self, section: &Section) -> Option<(Price, String)> {
        // Every customer of Azure has an address of their own.
        let is_azure = |address: &str| self.vendor == "azure" && address.contains(".azure.com/");
        let is_own = self.address.as_deref().is_none_or(is_azure);
        let row = self.row(section).filter(|_| is_own);
        let known = || is_own.then(|| known_price(&self.vendor, &self.model)).flatten();
        let of_row = row.and_then(|row| Some((row.price?, source(row))));
        let of_table = || known().map(|price| (price, "the table of prices".to_owned()));
        let of_kind = || self.price.map(|price| (price, format!("the kind `{}`", section.common.kind)));
        of_row.or_else(of_table).or_else(of_kind)
    }

    /// Returns the provider with the probed features of its server, if its kind has a probe. After a failed probe it
    /// keeps the capabilities of its kind.
    #[must_use]
    pub async fn probed(mut self) -> Self {
        // An unavailable server is reported by its first call.
        _ = self.ask_server(false).await;
        self
    }

    /// Probes the server, if its kind has a probe. Returns a line with the features that the server lacks; `None` if it
    /// has all promised ones. `fresh` ignores cached results.
    ///
    /// The usage of the first later call includes the cost of the probe.
    ///
    /// # Errors
    /// A [`Fault`] if the server cannot be probed; then the capabilities stay unchanged.
    pub async fn ask_server(&mut self, fresh: bool) -> Result<Option<String>, Fault> {
        let Some(probe) = &self.probe else { return Ok(None) };
        let Probed { provider, notes, usage } = probe.run(fresh).await?;
        let before = self.provider.capabilities().enforcement;
        let now = provider.capabilities().enforcement;
        let weaker = (now < before).then(|| {
            let first = provider.capabilities().dialects.first().map_or("prompt", String::as_str);
            format!("asked in `{first}`, because {}", notes.join("; "))
        });
        self.provider = probe::booked(provider, usage);
        Ok(weaker)
    }

    /// Returns the backend for an extractor: the provider with the layers of its section. From the inside out these are
    /// the prompt-only mode, time-outs, the limit of concurrency, the trace, and the stages of a tiny model.
    ///
    /// # Errors
    /// [`ConfigError`] if `modes` names a dialect that is not one of `dialects`.
    pub(super) fn backend(self, section: &Section, dialects: &Dialects) -> Result<Backend, ConfigError> {
        let Common { modes, prompt_only, concurrency, rpm, tpm, tighten, .. } = &section.common;
        let (price, row) = (self.price(section), self.row(section));
        let mut provider = self.provider;
        let identity =
            identity(&self.system, self.address.as_deref(), &self.model, section.common.kind.as_str());
        let promised = provider.capabilities().clone();
        let is_tiny = !provider.capabilities().keeps_limit && section.registry().is_tiny(&self.model);
        if *prompt_only {
            provider = Arc::new(formwork_prompt::Prompt::new(provider));
        }
        provider = timeouts(&section.common).wrap(provider);
        if let Some(calls) = concurrency {
            provider = Concurrency::new(*calls).wrap(provider);
        }
        if let Some(tokens) = tpm {
            provider = Tokens::per_minute(tokens.get()).wrap(provider);
        }
        if let Some(calls) = rpm {
            provider = Rate::new(calls.get() as usize, Duration::from_secs(60)).wrap(provider);
        }
        provider = Trace::new(&self.system, &self.model).wrap(provider);
        let tighten = tighten.or(is_tiny.then_some(Tighten::Bounded));
        // A budget reserves one call.
        if tighten == Some(Tighten::Bounded) && price.is_none_or(|price| price == Price::default()) {
            provider = Stages.wrap(provider);
        }
        let mut backend = Backend::new(provider)
            .with_name(&section.name)
            .with_identity(identity)
            .with_sampling(section.settings().sampling())
            .with_observation_store(observations().with_thresholds(section.health()));
        backend = backend.with_dialects(dialects.clone());
        if is_tiny {
            backend = backend.with_default_max_tokens(TINY_MAX_TOKENS);
        }
        if let Some(tighten) = tighten {
            backend = backend.with_tighten(tighten);
        }
        // A model reasons at every host alike.
        let known = section.registry().lookup(&format!("{}/{}", self.vendor, self.model));
        let by_itself = known.map(|row| matches!(row.reasoning, Reasoning::ByDefault | Reasoning::Always));
        if section.settings().effort.map_or(by_itself == Some(true), |effort| effort != Effort::None) {
            backend = backend.with_reasoning_tokens(Capabilities::REASONING_TOKENS);
        }
        if let Some(row) = row {
            retirement::warn(row, &self.model, &section.name);
        }
        if modes.as_ref().is_some_and(Vec::is_empty) {
            return Err(section.error("`modes` is empty: name a dialect"));
        }
        for name in modes.iter().flatten() {
            let mode = mode(name, &promised, dialects).map_err(|message| section.error(message))?;
            backend = backend.with_mode(mode);
        }
        // A row without limits leaves those of the dialect.
        if let Some(limits) = row.map(|row| row.limits).filter(|limits| !limits.is_empty()) {
            let limited = backend.modes().into_iter().map(|mode| Limited::wrap(mode, limits));
            backend = backend.with_modes(limited.collect::<Vec<_>>());
        }
        if let Some(price) = price {
            backend = backend.with_price(price);
        }
        Ok(backend)
    }
}

/// Returns the output mode of a name in `modes`: a dialect, or a forced tool with the dialect of the provider.
fn mode(name: &str, promised: &Capabilities, dialects: &Dialects) -> Result<Arc<dyn Lower>, String> {
    if name == Tool::NAME {
        let tool = Tool::of(promised, dialects);
        return tool
            .map(|tool| Arc::new(tool) as Arc<dyn Lower>)
            .ok_or_else(|| "the mode `tool`: the provider cannot be forced to call a tool".to_owned());
    }
    dialects.get(name).map(|dialect| dialect as Arc<dyn Lower>)
}

/// The default token limit of tiny models, which do not end texts by themselves.
const TINY_MAX_TOKENS: u32 = 512;

/// Returns the identity of a target across configurations: a digest, because it is written to disk and the query of an
/// address may contain a key.
fn identity(system: &str, address: Option<&str>, model: &str, kind: &str) -> String {
    let parts = [kind, system, address.unwrap_or_default(), model].join("\n");
    Sha256::digest(parts).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the observations of this process about its targets, and those of earlier processes in the file `FORMWORK_OBSERVATIONS`
/// (default: `observations.jsonl` in the [cache folder](crate::cache_folder); an empty variable: no file). All providers of a
/// configuration use this store, with the thresholds of its section `[health]`.
///
/// ```
/// for restriction in formwork::providers::observations().in_force() {
///     println!("{restriction}");
/// }
/// ```
pub fn observations() -> ObservationStore {
    static MEMORY: LazyLock<ObservationStore> = LazyLock::new(|| {
        crate::cache::observations().map_or_else(ObservationStore::new, ObservationStore::with_file)
    });
    MEMORY.clone()
}

fn timeouts(common: &Common) -> Timeout {
    let seconds =
        |seconds: Option<f64>| seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let timeout = Timeout::new();
    let timeout = seconds(common.first_timeout_seconds).map_or(timeout, |limit| timeout.with_first(limit));
    let timeout = seconds(common.idle_timeout_seconds).map_or(timeout, |limit| timeout.with_idle(limit));
    seconds(common.timeout_seconds).map_or(timeout, |limit| timeout.with_total(limit))
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(all(feature = "gemini", feature = "openai", feature = "ollama"))]
    use crate::config::Config;
    #[cfg(all(feature = "gemini", feature = "openai", feature = "ollama"))]
    use crate::providers::Providers;

    /// Returns the price of a section's model, and its identity.
    #[cfg(all(feature = "gemini", feature = "openai", feature = "ollama"))]
    fn known(lines: &str) -> (Option<Price>, String) {
        let config = Config::from_toml(&format!("[providers.a]\n{lines}")).unwrap();
        let section = config.section("a").unwrap();
        let made = Providers::builtin().make(section).unwrap();
        let identity = identity(&made.system, made.address.as_deref(), &made.model, &section.common.kind);
        (made.price(section), identity)
    }

    #[cfg(all(feature = "gemini", feature = "openai", feature = "ollama"))]
    #[test]
    fn a_price_holds_at_the_vendors_own_address_and_targets_differ_by_address_and_model() {
        let own = "api_key_env = \"\"\nkind = ";
        let cases = [
            ("\"openai\"\nmodel = \"gpt-4o-mini\"", true),
            ("\"openai\"\nmodel = \"gpt-4o-mini\"\nbase_url = \"http://localhost:1/v1\"", false),
            ("\"openai\"\nmodel = \"nobody-knows\"", false),
            ("\"llama-server\"\nmodel = \"gpt-4o-mini\"", false),
            ("\"gemini\"\nmodel = \"gemini-2.5-flash\"", true),
            ("\"openrouter\"\nmodel = \"openai/gpt-4o\"", true),
            ("\"azure\"\nmodel = \"gpt-4o\"\nbase_url = \"https://us.openai.azure.com/openai/v1\"", true),
            ("\"azure\"\nmodel = \"gpt-4o\"\nbase_url = \"https://localhost.example/openai/v1\"", false),
            ("\"gemini\"\nmodel = \"gemini-2.5-flash\"\nbase_url = \"http://localhost:1\"", false),
            ("\"ollama\"\nmodel = \"qwen3:8b\"", false),
            ("\"ollama\"\nmodel = \"qwen3:8b\"\nbase_url = \"http://elsewhere:11434\"", false),
        ];
        let found: Vec<_> = cases.iter().map(|(lines, _)| known(&format!("{own}{lines}"))).collect();
        for ((lines, priced), (price, identity)) in cases.iter().zip(&found) {
            assert_eq!(price.is_some(), *priced, "{lines}");
            assert!(!identity.contains("localhost") && identity.len() == 32, "{identity}");
        }
        let identities: std::collections::BTreeSet<_> = found.iter().map(|(_, identity)| identity).collect();
        assert_eq!(identities.len(), cases.len());
    }
}
