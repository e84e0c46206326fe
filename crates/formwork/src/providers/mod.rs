//! Creates the providers of a configuration by their `kind`.

#[cfg(feature = "anthropic")]
mod anthropic;
#[cfg(feature = "bedrock")]
mod bedrock;
#[cfg(feature = "cohere")]
mod cohere;
#[cfg(feature = "gemini")]
mod gemini;
#[cfg(feature = "http")]
mod http;
mod local;
#[cfg(feature = "ollama")]
mod ollama;
#[cfg(feature = "openai")]
mod openai;
mod probe_cache;
#[cfg(any(feature = "gemini", feature = "openai"))]
mod promises;
#[cfg(feature = "http")]
mod raw;
#[cfg(feature = "http")]
mod tape;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use formwork_core::{Answer, Delta, Fault, Layer as _, Price, SharedProvider, Tighten, Usage};
use formwork_dialect::{Dialect, Dialects};
use formwork_extract::{Backend, ObservationStore, Rotation};
use formwork_layers::{Concurrency, Rate, Timeout, Tokens, Trace};
use futures_util::StreamExt as _;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::config::{Common, Config, ConfigError, Section, TargetList};

#[cfg(feature = "http")]
pub use http::{Server, transport};
#[cfg(feature = "ollama")]
pub use ollama::ollama_admin;
pub use probe_cache::ProbeCache;
#[cfg(feature = "http")]
pub use raw::{Protocol, Raw};

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
pub struct Made {
    /// The provider.
    pub provider: SharedProvider,
    /// The provider's name in OpenTelemetry's conventions: `openai`, `ollama`.
    pub system: String,
    /// The name of the model.
    pub model: String,
    /// The address of the server, if it is not the default of its kind. The vendor's price does not apply to such a
    /// server.
    pub address: Option<String>,
    /// The probe of the server's features; `None` if the kind has none.
    pub probe: Option<Probe>,
}

/// Probes the features of a server before its first use. [`ProbeCache`] keeps the results.
///
/// ```
/// use std::sync::Arc;
///
/// use formwork::core::Usage;
/// use formwork::providers::{Probe, Probed};
/// use formwork_testkit::Scripted;
///
/// let probe = Probe::new(|fresh| async move {
///     // Asks the server, or reads a `ProbeCache` unless `fresh` is set.
///     let notes = if fresh { vec!["it ignores schemas".to_owned()] } else { Vec::new() };
///     Ok(Probed { provider: Arc::new(Scripted::new(["{}"])), notes, usage: Usage::default() })
/// });
/// # let _ = probe;
/// ```
#[derive(Clone)]
pub struct Probe(Arc<dyn Fn(bool) -> Probing + Send + Sync>);

type Probing = Pin<Box<dyn Future<Output = Result<Probed, Fault>> + Send>>;

/// The result of a probe.
///
/// ```
/// use formwork::{core::Usage, providers::Probed};
/// use formwork_testkit::Scripted;
///
/// let provider = std::sync::Arc::new(Scripted::new(["{}"]));
/// let probed = Probed { provider, notes: vec!["it ignores schemas".into()], usage: Usage::default() };
/// assert_eq!(probed.notes.len(), 1);
/// ```
#[derive(Debug, Clone)]
pub struct Probed {
    /// The provider, with the verified capabilities and settings.
    pub provider: SharedProvider,
    /// The capabilities that the server lacks, one line each.
    pub notes: Vec<String>,
    /// The tokens of the probe's calls; none if the result came from a cache.
    pub usage: Usage,
}

impl Probe {
    /// Creates a probe that calls this function; its argument `fresh` is whether caches must be ignored.
    pub fn new<F>(probe: impl Fn(bool) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Probed, Fault>> + Send + 'static,
    {
        Self(Arc::new(move |fresh| Box::pin(probe(fresh))))
    }
}

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Probe")
    }
}

type Make = Arc<dyn Fn(&Section) -> Result<Made, ConfigError> + Send + Sync>;

/// A kind of provider.
///
/// ```
/// use formwork::providers::Providers;
///
/// let providers = Providers::builtin();
/// let kind = providers.kind("ollama").unwrap();
/// assert_eq!(kind.about(), "Ollama's own API, on this machine or another");
/// assert!(kind.schema()["properties"]["model"].is_object());
/// assert!(providers.kind("olama").unwrap_err().contains("did you mean `ollama`?"));
/// ```
#[derive(Clone)]
pub struct Kind {
    name: String,
    about: String,
    schema: Value,
    make: Make,
}

impl Kind {
    /// Creates a kind. `schema` is the JSON Schema of its own fields in a section, besides those of [`Common`]. `make`
    /// creates the provider of a section; see [`transport`].
    pub fn new(
        name: impl Into<String>,
        about: impl Into<String>,
        schema: Value,
        make: impl Fn(&Section) -> Result<Made, ConfigError> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), about: about.into(), schema, make: Arc::new(make) }
    }

    /// Returns the name, which is the value of `kind` in a section.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the description, in one line.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// Returns the JSON Schema of the kind's own fields.
    pub fn schema(&self) -> Value {
        self.schema.clone()
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Kind").field(&self.name).finish()
    }
}

/// The kinds of providers that a configuration can name.
///
/// ```
/// use formwork::providers::{Kind, Made, Providers};
/// use formwork_testkit::Scripted;
/// use serde_json::json;
/// use std::sync::Arc;
///
/// let providers = Providers::builtin().with(Kind::new("acme", "Our own server", json!({}), |_| {
///     let provider = Arc::new(Scripted::new(["{}"]));
///     Ok(Made { provider, system: "acme".into(), model: "a-1".into(), address: None, probe: None })
/// }));
/// let config = formwork::config::Config::from_toml("[providers.mine]\nkind = \"acme\"")?;
/// assert_eq!(providers.backends(&config)?.len(), 1);
/// # Ok::<(), formwork::config::ConfigError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Providers {
    kinds: Vec<Kind>,
    dialects: Dialects,
}

impl Providers {
    /// Creates a set without kinds.
    pub fn none() -> Self {
        Self::default()
    }

    /// Returns the kinds of this build.
    pub fn builtin() -> Self {
        let providers = Self::none().with(local::kind());
        #[cfg(feature = "anthropic")]
        let providers = providers.with(anthropic::kind());
        #[cfg(feature = "bedrock")]
        let providers = providers.with(bedrock::kind());
        #[cfg(feature = "cohere")]
        let providers = providers.with(cohere::kind());
        #[cfg(feature = "gemini")]
        let providers = providers.with(gemini::kind());
        #[cfg(feature = "ollama")]
        let providers = providers.with(ollama::kind());
        #[cfg(feature = "openai")]
        let providers = openai::kinds().into_iter().fold(providers, Self::with);
        providers
    }

    /// Adds a kind, or replaces the kind of this name.
    #[must_use]
    pub fn with(mut self, kind: Kind) -> Self {
        self.kinds.retain(|other| other.name != kind.name);
        self.kinds.push(kind);
        self
    }

    /// Adds a dialect, or replaces the dialect of this name (default: those of `formwork-dialect`). A kind of provider
    /// can then promise it by its name ([`Capabilities::with_dialect`](formwork_core::Capabilities::with_dialect)), and
    /// `modes = [...]` and a row of a registry can name it.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use formwork::config::Config;
    /// use formwork::dialect::Native;
    /// use formwork::dialect::profile::{LLAMA_CPP, Profile};
    /// use formwork::providers::Providers;
    ///
    /// const ACME: Profile = Profile { name: "acme", about: "Acme's own API", ..LLAMA_CPP };
    ///
    /// let providers = Providers::builtin().with_dialect(Arc::new(Native::new(&ACME)));
    /// let text = "[providers.a]\nkind = \"ollama\"\nmodel = \"m\"\nmodes = [\"acme\", \"prompt\"]";
    /// let backends = providers.backends(&Config::from_toml(text)?)?;
    /// assert_eq!(backends[0].modes()[0].name(), "acme");
    /// # Ok::<(), formwork::config::ConfigError>(())
    /// ```
    #[must_use]
    pub fn with_dialect(mut self, dialect: Arc<dyn Dialect>) -> Self {
        self.dialects = self.dialects.with(dialect);
        self
    }

    /// Returns the dialects that a configuration can name (default: those of `formwork-dialect`).
    pub const fn dialects(&self) -> &Dialects {
        &self.dialects
    }

    /// Returns all kinds.
    pub fn kinds(&self) -> impl Iterator<Item = &Kind> {
        self.kinds.iter()
    }

    /// Returns the kind of a name.
    ///
    /// # Errors
    /// A message with the most similar name and all names.
    pub fn kind(&self, name: &str) -> Result<&Kind, String> {
        self.kinds.iter().find(|kind| kind.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.kinds.iter().map(|kind| kind.name.as_str()).collect();
            let meant = formwork_schema::nearest(name, names.iter().copied());
            let meant = meant.map(|meant| format!("did you mean `{meant}`? ")).unwrap_or_default();
            format!("no provider kind `{name}`: {meant}this build has {}", names.join(", "))
        })
    }

    /// Creates the provider of a section, without layers. For a model in this process it loads the model, which blocks;
    /// async code calls it on a thread for blocking work.
    ///
    /// # Errors
    /// [`ConfigError`] if the kind is unknown or a setting is invalid.
    pub fn make(&self, section: &Section) -> Result<Made, ConfigError> {
        let kind = self.kind(&section.common.kind).map_err(|message| section.error(message))?;
        (kind.make)(&section.clone().with_dialects(self.dialects.clone()))
    }

    /// Returns the targets of a configuration in order, without probing their servers.
    ///
    /// # Errors
    /// [`ConfigError`] if one of them cannot be created: an unknown kind, a missing key, an invalid address.
    pub fn backends(&self, config: &Config) -> Result<Vec<Backend>, ConfigError> {
        let list = config.target_list();
        let made = self.usable(config, list)?.into_iter();
        let backends = made.map(|(made, section)| made.backend(section, &self.dialects));
        Ok(in_turns(backends.collect::<Result<_, _>>()?, list))
    }

    /// Returns the providers of a list, without those whose keys are missing.
    fn usable<'c>(
        &self,
        config: &'c Config,
        list: &TargetList,
    ) -> Result<Vec<(Made, &'c Section)>, ConfigError> {
        let (mut usable, mut missing) = (Vec::new(), Vec::new());
        for name in &list.targets {
            let section = config.section(name)?;
            match self.make(section) {
                Ok(made) => usable.push((made, section)),
                Err(error) if error.lacks_key() => missing.push(error),
                Err(error) => return Err(error),
            }
        }
        if usable.is_empty() && !missing.is_empty() {
            return Err(missing.swap_remove(0));
        }
        #[cfg(feature = "http")]
        for error in missing {
            tracing::warn!(target: "formwork", "{error}; the other providers are asked");
        }
        Ok(usable)
    }

    /// Returns the backend of one section, without probing its server.
    ///
    /// # Errors
    /// The errors of [`backends`](Self::backends).
    pub fn backend(&self, section: &Section) -> Result<Backend, ConfigError> {
        self.make(section)?.backend(section, &self.dialects)
    }

    /// Returns the targets of a configuration in order, with probed servers.
    ///
    /// # Errors
    /// The errors of [`backends`](Self::backends).
    pub async fn probed(&self, config: &Config) -> Result<Vec<Backend>, ConfigError> {
        self.probed_list(config, config.target_list()).await
    }

    /// Returns the providers of a list of this configuration, each with what its server was found to enforce, and with the
    /// list's order.
    ///
    /// # Errors
    /// As [`backends`](Self::backends).
    pub async fn probed_list(&self, config: &Config, list: &TargetList) -> Result<Vec<Backend>, ConfigError> {
        let mut backends = Vec::new();
        for (made, section) in self.usable(config, list)? {
            backends.push(made.probed().await.backend(section, &self.dialects)?);
        }
        Ok(in_turns(backends, list))
    }
}

impl Made {
    /// Returns the price of the model: that of the configuration, else the registry's, if it is asked at its own vendor; a
    /// model in this process costs nothing. `None` if the price is not known.
    pub fn price(&self, section: &Section) -> Option<Price> {
        section.common.price.or_else(|| self.known_price(section))
    }

    fn known_price(&self, section: &Section) -> Option<Price> {
        if self.system == LOCAL {
            return Some(Price::default());
        }
        // OpenTelemetry's conventions put the cloud before the name of its API.
        let vendor = self.system.strip_prefix("gcp.").unwrap_or(&self.system);
        let row = section.registry().lookup(&format!("{vendor}/{}", self.model))?;
        row.price.filter(|_| row.provider == vendor && self.address.is_none())
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
        let Probed { provider, notes, usage } = (probe.0)(fresh).await?;
        let before = self.provider.capabilities().enforcement;
        let now = provider.capabilities().enforcement;
        let weaker = (now < before).then(|| {
            let first = provider.capabilities().dialects.first().map_or("prompt", String::as_str);
            format!("asked in `{first}`, because {}", notes.join("; "))
        });
        self.provider = Arc::new(Booked { inner: provider, unbooked: Arc::new(Mutex::new(usage)) });
        Ok(weaker)
    }

    /// Returns the backend for an extractor: the provider with the layers of its section. From the inside out these are
    /// the prompt-only mode, time-outs, the limit of concurrency, and the trace.
    ///
    /// # Errors
    /// [`ConfigError`] if `modes` names a dialect that is not one of `dialects`.
    pub fn backend(self, section: &Section, dialects: &Dialects) -> Result<Backend, ConfigError> {
        let Common { modes, prompt_only, concurrency, rpm, tpm, tighten, .. } = &section.common;
        let price = self.price(section);
        let mut provider = self.provider;
        let identity =
            identity(&self.system, self.address.as_deref(), &self.model, section.common.kind.as_str());
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
        let mut backend = Backend::new(provider)
            .with_name(&section.name)
            .with_identity(identity)
            .with_observation_store(store());
        backend = backend.with_dialects(dialects.clone());
        if is_tiny {
            backend = backend.with_tighten(Tighten::Bounded).with_default_max_tokens(TINY_MAX_TOKENS);
        }
        if let Some(tighten) = tighten {
            backend = backend.with_tighten(*tighten);
        }
        if modes.as_ref().is_some_and(Vec::is_empty) {
            return Err(section.error("`modes` is empty: name a dialect"));
        }
        for name in modes.iter().flatten() {
            backend = backend.with_mode(dialects.get(name).map_err(|message| section.error(message))?);
        }
        if let Some(price) = price {
            backend = backend.with_price(price);
        }
        Ok(backend)
    }
}

/// Returns the backends of a list with the rotation that it asks for, if any. Targets that were left out have no turn.
pub fn in_turns(backends: Vec<Backend>, list: &TargetList) -> Vec<Backend> {
    let Some(weights) = list.weights() else { return backends };
    let weight = |backend: &Backend| {
        let place = list.targets.iter().position(|target| target == backend.name());
        place.and_then(|place| weights.get(place)).copied().unwrap_or_default()
    };
    let rotation = Rotation::weighted(&backends.iter().map(weight).collect::<Vec<_>>());
    backends.into_iter().map(|backend| backend.with_rotation(rotation.clone())).collect()
}

/// Returns the server of a section as it is; `None` for a model in this process, for kinds of your own, and where the section
/// sets what wraps calls (`concurrency`, `prompt_only`) or where they come from (`cassette`, `record`).
///
/// # Errors
/// [`ConfigError`], if the section cannot be used.
#[cfg(feature = "http")]
pub fn raw(section: &Section) -> Result<Option<Raw>, ConfigError> {
    let common = &section.common;
    let is_wrapped = common.concurrency.is_some() || common.prompt_only;
    if is_wrapped || common.cassette.is_some() || common.record.is_some() {
        return Ok(None);
    }
    match common.kind.as_str() {
        #[cfg(feature = "anthropic")]
        "anthropic" => anthropic::raw(section).map(Some),
        #[cfg(feature = "ollama")]
        "ollama" => ollama::raw(section).map(Some),
        #[cfg(feature = "openai")]
        kind if formwork_openai::presets().iter().any(|preset| preset.name == kind) => {
            openai::raw(section, kind).map(Some)
        }
        _ => Ok(None),
    }
}

/// The name of the model in this process as a target.
const LOCAL: &str = "formwork-local";

/// The default token limit of tiny models, which do not end texts by themselves.
const TINY_MAX_TOKENS: u32 = 512;

/// Returns the identity of a target across configurations: a digest, because it is written to disk and the query of an
/// address may contain a key.
fn identity(system: &str, address: Option<&str>, model: &str, kind: &str) -> String {
    let parts = [kind, system, address.unwrap_or_default(), model].join("\n");
    Sha256::digest(parts).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the observations of this process about its targets, and those of earlier processes in the cache folder.
fn store() -> ObservationStore {
    static MEMORY: LazyLock<ObservationStore> = LazyLock::new(|| {
        let file = crate::cache::folder().map(|folder| folder.join("observations.jsonl"));
        file.map_or_else(ObservationStore::new, ObservationStore::with_file)
    });
    MEMORY.clone()
}

/// The value of an environment variable that is set and not empty.
#[cfg(any(
    feature = "anthropic",
    feature = "bedrock",
    feature = "gemini",
    feature = "ollama",
    feature = "openai"
))]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

fn timeouts(common: &Common) -> Timeout {
    let seconds =
        |seconds: Option<f64>| seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let timeout = Timeout::new();
    let timeout = seconds(common.first_timeout_seconds).map_or(timeout, |limit| timeout.with_first(limit));
    let timeout = seconds(common.idle_timeout_seconds).map_or(timeout, |limit| timeout.with_idle(limit));
    seconds(common.timeout_seconds).map_or(timeout, |limit| timeout.with_total(limit))
}

/// A provider whose first answer includes the usage of its probe, so that probes are in the ledger like other calls.
#[derive(Debug)]
struct Booked {
    inner: SharedProvider,
    unbooked: Arc<Mutex<Usage>>,
}

#[async_trait::async_trait]
impl formwork_core::Provider for Booked {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn capabilities(&self) -> &formwork_core::Capabilities {
        self.inner.capabilities()
    }

    async fn call(&self, call: &formwork_core::Call) -> Result<Answer, Fault> {
        let unbooked = Arc::clone(&self.unbooked);
        let answer = self.inner.call(call).await?;
        Ok(Answer::new(answer.map(move |delta| match delta {
            Ok(Delta::End { finish, usage, closed_at, restrained, model }) => {
                let probe = std::mem::take(&mut *unbooked.lock().unwrap_or_else(PoisonError::into_inner));
                Ok(Delta::End { finish, usage: usage.plus(probe.of_a_probe()), closed_at, restrained, model })
            }
            other => other,
        })))
    }

    async fn probe(&self) -> Result<formwork_core::Capabilities, Fault> {
        self.inner.probe().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the price of a section's model, and its identity.
    #[cfg(all(feature = "gemini", feature = "openai", feature = "ollama"))]
    fn known(lines: &str) -> (Option<Price>, String) {
        let config = Config::from_toml(&format!("[providers.a]\n{lines}")).unwrap();
        let section = config.section("a").unwrap();
        let made = Providers::builtin().make(section).unwrap();
        let identity = identity(&made.system, made.address.as_deref(), &made.model, &section.common.kind);
        (made.known_price(section), identity)
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
