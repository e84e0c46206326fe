//! Providers by name: what a configuration's `kind` stands for.

#[cfg(feature = "anthropic")]
mod anthropic;
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
use formwork_extract::{Backend, ObservationStore};
use formwork_layers::{Concurrency, Timeout, Trace};
use futures_util::StreamExt as _;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::config::{Common, Config, ConfigError, Section};

#[cfg(feature = "http")]
pub use http::{Server, transport};
#[cfg(feature = "ollama")]
pub use ollama::ollama_admin;
pub use probe_cache::ProbeCache;
#[cfg(feature = "http")]
pub use raw::{Protocol, Raw};

/// A provider made from a section of a configuration, before anything is wrapped around it.
#[derive(Debug, Clone)]
pub struct Made {
    /// The provider.
    pub provider: SharedProvider,
    /// The provider's name in the conventions of OpenTelemetry: `openai`, `ollama`.
    pub system: String,
    /// The model that is asked.
    pub model: String,
    /// The address of its server where that is not the usual one of its kind; a model's price at its vendor does not hold
    /// there.
    pub address: Option<String>,
    /// How its server is asked what it can do before it is used; `None` if it is not asked.
    pub probe: Option<Probe>,
}

/// Asks a server what it can do, before it is used. [`ProbeCache`] keeps what was found.
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

/// The findings of a probe.
#[derive(Debug, Clone)]
pub struct Probed {
    /// The provider, with the promises and the settings that were verified.
    pub provider: SharedProvider,
    /// The promises that were not kept, a line each.
    pub notes: Vec<String>,
    /// The tokens that the calls of the probe used up; none if what was found earlier still counts.
    pub usage: Usage,
}

impl Probe {
    /// Returns a probe that calls this function, with `fresh` where nothing that was found earlier may count.
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

/// One kind of provider.
#[derive(Clone)]
pub struct Kind {
    name: String,
    about: String,
    schema: Value,
    make: Make,
}

impl Kind {
    /// Returns a kind of this name. `schema` is the JSON Schema of the fields that its sections have beside those of every
    /// kind;
    /// `make` reads a section and returns its provider, see [`transport`].
    pub fn new(
        name: impl Into<String>,
        about: impl Into<String>,
        schema: Value,
        make: impl Fn(&Section) -> Result<Made, ConfigError> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), about: about.into(), schema, make: Arc::new(make) }
    }

    /// The word after `kind =`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// One line for people.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// The JSON Schema of what it may be told.
    pub fn schema(&self) -> Value {
        self.schema.clone()
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Kind").field(&self.name).finish()
    }
}

/// The kinds of providers that a configuration may name.
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
    /// No kinds.
    pub fn none() -> Self {
        Self::default()
    }

    /// The kinds that this build has.
    pub fn builtin() -> Self {
        let providers = Self::none().with(local::kind());
        #[cfg(feature = "anthropic")]
        let providers = providers.with(anthropic::kind());
        #[cfg(feature = "gemini")]
        let providers = providers.with(gemini::kind());
        #[cfg(feature = "ollama")]
        let providers = providers.with(ollama::kind());
        #[cfg(feature = "openai")]
        let providers = openai::kinds().into_iter().fold(providers, Self::with);
        providers
    }

    /// Adds a kind, in place of another one of its name.
    #[must_use]
    pub fn with(mut self, kind: Kind) -> Self {
        self.kinds.retain(|other| other.name != kind.name);
        self.kinds.push(kind);
        self
    }

    /// Adds a dialect, in place of another one of its name (default: those of `formwork-dialect`). A kind of provider then
    /// promises it by its name ([`Capabilities::with_dialect`](formwork_core::Capabilities::with_dialect)), and `modes =
    /// [...]` and a row of a registry may name it.
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

    /// Returns the dialects that a configuration may name (default: those of `formwork-dialect`).
    pub const fn dialects(&self) -> &Dialects {
        &self.dialects
    }

    /// All kinds.
    pub fn kinds(&self) -> impl Iterator<Item = &Kind> {
        self.kinds.iter()
    }

    /// A kind by its name.
    ///
    /// # Errors
    /// All names, and the nearest of them.
    pub fn kind(&self, name: &str) -> Result<&Kind, String> {
        self.kinds.iter().find(|kind| kind.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.kinds.iter().map(|kind| kind.name.as_str()).collect();
            let meant = formwork_schema::nearest(name, names.iter().copied());
            let meant = meant.map(|meant| format!("did you mean `{meant}`? ")).unwrap_or_default();
            format!("no provider kind `{name}`: {meant}this build has {}", names.join(", "))
        })
    }

    /// Makes the provider of a section, without what is wrapped around each call. A model in this process is loaded by
    /// it, which blocks; async code calls it on a blocking thread then.
    ///
    /// # Errors
    /// [`ConfigError`], if the kind is unknown or the section is not as the kind needs it.
    pub fn make(&self, section: &Section) -> Result<Made, ConfigError> {
        let kind = self.kind(&section.common.kind).map_err(|message| section.error(message))?;
        (kind.make)(&section.clone().with_dialects(self.dialects.clone()))
    }

    /// The providers that a configuration asks, in order, without asking their servers first.
    ///
    /// # Errors
    /// [`ConfigError`], if one of them cannot be made: an unknown kind, a missing key, an address that is none.
    pub fn backends(&self, config: &Config) -> Result<Vec<Backend>, ConfigError> {
        config.targets().iter().map(|name| self.backend(config.section(name)?)).collect()
    }

    /// The same for one section.
    ///
    /// # Errors
    /// As [`backends`](Self::backends).
    pub fn backend(&self, section: &Section) -> Result<Backend, ConfigError> {
        self.make(section)?.backend(section, &self.dialects)
    }

    /// The providers that a configuration asks, each with what its server was found to enforce.
    ///
    /// # Errors
    /// As [`backends`](Self::backends).
    pub async fn probed(&self, config: &Config) -> Result<Vec<Backend>, ConfigError> {
        let mut backends = Vec::new();
        for name in config.targets() {
            let section = config.section(name)?;
            backends.push(self.make(section)?.probed().await.backend(section, &self.dialects)?);
        }
        Ok(backends)
    }
}

impl Made {
    /// Returns what the registry says that the model costs at its own vendor; nothing in this process. Elsewhere the price
    /// is not known.
    fn known_price(&self, section: &Section) -> Option<Price> {
        if self.system == LOCAL {
            return Some(Price::default());
        }
        // The conventions of OpenTelemetry put the cloud before the name of its API.
        let vendor = self.system.strip_prefix("gcp.").unwrap_or(&self.system);
        let row = section.registry().lookup(&format!("{vendor}/{}", self.model))?;
        row.price.filter(|_| row.provider == vendor && self.address.is_none())
    }

    /// The same with what its server is found to do, where its kind asks servers. One that cannot be asked keeps its
    /// kind's promises: whether it answers is found out when it is called.
    #[must_use]
    pub async fn probed(mut self) -> Self {
        // Whether the server answers is found out when it is called.
        _ = self.ask_server(false).await;
        self
    }

    /// Asks the server what it can do, where its kind asks servers. Returns what is weaker than it was promised, in one
    /// line; `None` if nothing is. With `fresh` nothing that was found earlier counts.
    ///
    /// The cost of the probe is part of the usage of the first call that follows.
    ///
    /// # Errors
    /// A [`Fault`], if the server cannot be asked; then the promises stay as they were.
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

    /// The provider as an extractor asks it, with what a section wraps around each call: from the inside out, the
    /// prompt alone, time-outs, a limit of calls at once, a trace.
    ///
    /// # Errors
    /// [`ConfigError`], if `modes` names a dialect that is not one of `dialects`.
    pub fn backend(self, section: &Section, dialects: &Dialects) -> Result<Backend, ConfigError> {
        let Common { modes, prompt_only, concurrency, price, tighten, .. } = &section.common;
        let known_price = self.known_price(section);
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
        if let Some(price) = price.or(known_price) {
            backend = backend.with_price(price);
        }
        Ok(backend)
    }
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

/// The name of the model in this process where providers are told apart.
const LOCAL: &str = "formwork-local";

/// The limit of tokens for answers of tiny models, where no other one is set: they do not end texts by themselves.
const TINY_MAX_TOKENS: u32 = 512;

/// Returns what tells a target apart wherever it is configured: a digest, because it is written to disk and the query of an
/// address may hold a key.
fn identity(system: &str, address: Option<&str>, model: &str, kind: &str) -> String {
    let parts = [kind, system, address.unwrap_or_default(), model].join("\n");
    Sha256::digest(parts).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Returns what this process knows of its targets, and what earlier ones wrote into the cache folder.
fn store() -> ObservationStore {
    static MEMORY: LazyLock<ObservationStore> = LazyLock::new(|| {
        let file = crate::cache::folder().map(|folder| folder.join("observations.jsonl"));
        file.map_or_else(ObservationStore::new, ObservationStore::with_file)
    });
    MEMORY.clone()
}

/// The value of an environment variable that is set and not empty.
#[cfg(any(feature = "anthropic", feature = "gemini", feature = "ollama", feature = "openai"))]
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

/// A provider whose first answer also has the usage of the probe before it: probes are in the ledger like other calls.
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
                Ok(Delta::End { finish, usage: usage.plus(probe), closed_at, restrained, model })
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

    /// Returns what is known of a section's model: its price, and what it is told apart by.
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
