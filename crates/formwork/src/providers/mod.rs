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
mod hosted;
#[cfg(feature = "http")]
mod http;
mod local;
mod made;
#[cfg(feature = "ollama")]
mod ollama;
#[cfg(feature = "openai")]
mod openai;
mod probe;
mod probe_cache;
#[cfg(any(feature = "gemini", feature = "openai"))]
mod promises;
#[cfg(feature = "http")]
mod raw;
#[cfg(feature = "http")]
mod redacted;
mod retirement;
#[cfg(feature = "http")]
mod server;
#[cfg(feature = "http")]
mod tape;
#[cfg(feature = "http")]
mod trust;

use std::collections::BTreeMap;
use std::sync::Arc;

use formwork_core::{CustomRule, RetryPolicy, Rules, advised};
use formwork_dialect::{Dialect, Dialects};
use formwork_extract::{Backend, Rotation};
#[cfg(feature = "http")]
use formwork_wire::batch::SharedBatchApi;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

use crate::config::{Config, ConfigError, Section, TargetList};

#[cfg(feature = "http")]
pub use hosted::Hosted;
#[cfg(feature = "http")]
pub use http::{batch_transport, transport};
pub use local::local_settings;
pub use made::{Made, observations};
#[cfg(feature = "ollama")]
pub use ollama::ollama_admin;
pub use probe::{Probe, Probed};
pub use probe_cache::ProbeCache;
#[cfg(feature = "http")]
pub use raw::{Protocol, Raw};
#[cfg(feature = "http")]
pub use server::Server;
#[cfg(feature = "http")]
pub use trust::{check_telemetry, telemetry_uses};

/// Creates a part of a section's provider.
type Make<T> = Arc<dyn Fn(&Section) -> Result<T, ConfigError> + Send + Sync>;

/// The access to the models of a vendor's own service: the key, and what the service has.
///
/// ```
/// use formwork::providers::{Access, Providers};
///
/// let providers = Providers::builtin();
/// let access = Access::new("GROQ_API_KEY").with_example("openai/gpt-oss-20b");
/// assert_eq!(providers.kind("groq").unwrap().access(), Some(&Access { is_host: true, ..access }));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The environment variable from which a section without `api_key_env` reads the key.
    pub key_env: String,
    /// The identifier of one of the models.
    pub example: Option<String>,
    /// Whether the service has the models of other vendors.
    pub is_host: bool,
}

impl Access {
    /// Creates the access by the key in this environment variable, to models of the vendor's own.
    pub fn new(key_env: impl Into<String>) -> Self {
        Self { key_env: key_env.into(), example: None, is_host: false }
    }

    /// Sets the identifier of one of the models, as an example in messages (default: none).
    #[must_use]
    pub fn with_example(mut self, model: impl Into<String>) -> Self {
        self.example = Some(model.into());
        self
    }

    /// Returns whether the environment variable of the key is set and not empty.
    pub fn has_key(&self) -> bool {
        crate::config::variable(&self.key_env).is_some()
    }
}

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
    make: Make<Made>,
    access: Option<Access>,
    #[cfg(feature = "http")]
    raw: Option<Make<Option<Raw>>>,
    #[cfg(feature = "http")]
    batch: Option<Make<Option<SharedBatchApi>>>,
}

impl Kind {
    /// Creates a kind. `schema` is the JSON Schema of its own fields in a section, besides those of [`Common`](crate::config::Common). `make`
    /// creates the provider of a section; see [`transport`].
    pub fn new(
        name: impl Into<String>,
        about: impl Into<String>,
        schema: Value,
        make: impl Fn(&Section) -> Result<Made, ConfigError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            about: about.into(),
            schema,
            make: Arc::new(make),
            access: None,
            #[cfg(feature = "http")]
            raw: None,
            #[cfg(feature = "http")]
            batch: None,
        }
    }

    /// Creates a kind whose own fields are those of a type; see [`new`](Self::new).
    pub fn of<C: JsonSchema>(
        name: impl Into<String>,
        about: impl Into<String>,
        make: impl Fn(&Section) -> Result<Made, ConfigError> + Send + Sync + 'static,
    ) -> Self {
        Self::new(name, about, SchemaGenerator::default().into_root_schema_for::<C>().to_value(), make)
    }

    /// Sets the access to the models of the vendor's own service (default: unknown). Messages name it where a model is missing.
    #[must_use]
    pub fn with_access(mut self, access: Access) -> Self {
        self.access = Some(access);
        self
    }

    /// Returns the access to the models of the vendor's own service; `None` if it needs no key, or is unknown.
    pub const fn access(&self) -> Option<&Access> {
        self.access.as_ref()
    }

    /// Sets the function that returns the server of a section, for requests that are forwarded unchanged; it returns `None` if the
    /// section has none (default: no section has one). See [`Hosted::raw`].
    #[cfg(feature = "http")]
    #[must_use]
    pub fn with_raw(
        mut self,
        raw: impl Fn(&Section) -> Result<Option<Raw>, ConfigError> + Send + Sync + 'static,
    ) -> Self {
        self.raw = Some(Arc::new(raw));
        self
    }

    /// Sets the function that returns the batch API of a section; it returns `None` if the section has none (default: no section has
    /// one). See [`Hosted::batch`].
    #[cfg(feature = "http")]
    #[must_use]
    pub fn with_batch(
        mut self,
        batch: impl Fn(&Section) -> Result<Option<SharedBatchApi>, ConfigError> + Send + Sync + 'static,
    ) -> Self {
        self.batch = Some(Arc::new(batch));
        self
    }

    /// Returns whether the kind has a pass-through.
    #[cfg(feature = "http")]
    pub const fn has_raw(&self) -> bool {
        self.raw.is_some()
    }

    /// Returns whether the kind has a batch API.
    #[cfg(feature = "http")]
    pub const fn has_batch(&self) -> bool {
        self.batch.is_some()
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

formwork_core::debug_fields!(Kind { name });

/// Everything that a configuration can name: kinds of providers, dialects, rules and retry policies.
///
/// ```
/// use formwork::providers::{Kind, Made, Providers};
/// use formwork_testkit::Scripted;
/// use serde_json::json;
/// use std::sync::Arc;
///
/// let providers = Providers::builtin().with(Kind::new("acme", "Our own server", json!({}), |_| {
///     let provider = Arc::new(Scripted::new(["{}"]));
///     Ok(Made::new(provider, "acme", "a-1"))
/// }));
/// let config = formwork::config::Config::from_toml("[providers.mine]\nkind = \"acme\"")?;
/// assert_eq!(providers.backends(&config)?.len(), 1);
/// # Ok::<(), formwork::config::ConfigError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Providers {
    kinds: Vec<Kind>,
    dialects: Dialects,
    rules: Rules,
    policies: BTreeMap<String, Arc<dyn RetryPolicy>>,
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
        let providers = openai::kinds().fold(providers, Self::with);
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
    /// const ACME: Profile = LLAMA_CPP.named("acme", "Acme's own API");
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

    /// Adds a rule, or replaces the rule of this name (default: none). Contracts and files of rules name it:
    /// `{"rule": "custom", "name": "even", "target": "$.seats"}`.
    #[must_use]
    pub fn with_rule(mut self, rule: Arc<dyn CustomRule>) -> Self {
        self.rules = self.rules.with(rule);
        self
    }

    /// Returns the rules that contracts can name.
    pub const fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Adds a retry policy, or replaces the policy of this name (default: none). `retry_policy = "NAME"` in `[defaults]` of a
    /// configuration selects it.
    ///
    /// ```
    /// use formwork::config::Config;
    /// use formwork::core::Policy;
    /// use formwork::providers::Providers;
    ///
    /// let providers = Providers::builtin().with_policy("patient", Policy::default());
    /// let text = "[defaults]\nretry_policy = \"patent\"\n[providers.a]\nkind = \"ollama\"\nmodel = \"m\"";
    /// let error = providers.backends(&Config::from_toml(text)?).unwrap_err();
    /// assert_eq!(error.to_string(), "the configuration:2:16: there is no retry policy `patent`: did you mean `patient`?");
    /// # Ok::<(), formwork::config::ConfigError>(())
    /// ```
    #[must_use]
    pub fn with_policy(mut self, name: impl Into<String>, policy: impl RetryPolicy + 'static) -> Self {
        self.policies.insert(name.into(), Arc::new(policy));
        self
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
            /// The kinds that are features of this crate by their own names.
            const FEATURES: [&str; 6] = ["anthropic", "bedrock", "cohere", "gemini", "ollama", "openai"];
            let suggestion = match formwork_schema::nearest(name, names.iter().copied()) {
                _ if FEATURES.contains(&name) => {
                    format!("it needs the feature `{name}` of the crate `formwork`; ")
                }
                Some(suggestion) => format!("did you mean `{suggestion}`? "),
                None => String::new(),
            };
            format!("no provider kind `{name}`: {suggestion}this build has {}", names.join(", "))
        })
    }

    /// Creates the provider of a section, without layers. For a model in this process it loads the model, which blocks;
    /// async code calls it on a thread for blocking work.
    ///
    /// # Errors
    /// [`ConfigError`] if the kind is unknown or a setting is invalid.
    pub fn make(&self, section: &Section) -> Result<Made, ConfigError> {
        (self.kind_of(section)?.make)(&section.clone().with_dialects(self.dialects.clone()))
    }

    fn kind_of(&self, section: &Section) -> Result<&Kind, ConfigError> {
        self.kind(&section.common.kind).map_err(|message| section.error(message))
    }

    /// Returns the server of a section as it is; `None` if its kind has no [pass-through](Kind::with_raw), and where the section
    /// sets what wraps calls (`concurrency`, `prompt_only`) or where they come from (`cassette`, `record`).
    ///
    /// # Errors
    /// [`ConfigError`], if the section cannot be used.
    #[cfg(feature = "http")]
    pub fn raw(&self, section: &Section) -> Result<Option<Raw>, ConfigError> {
        let common = &section.common;
        let is_wrapped = common.concurrency.is_some() || common.prompt_only;
        if is_wrapped || common.cassette.is_some() || common.record.is_some() {
            return Ok(None);
        }
        let section = section.clone().with_dialects(self.dialects.clone());
        self.kind_of(&section)?.raw.as_ref().map_or(Ok(None), |raw| raw(&section))
    }

    /// Returns the batch API of a section; `None` if its kind has [none](Kind::with_batch), and where the section sets what wraps
    /// calls (`prompt_only`).
    ///
    /// # Errors
    /// [`ConfigError`], if the section cannot be used.
    #[cfg(feature = "http")]
    pub fn batch(&self, section: &Section) -> Result<Option<SharedBatchApi>, ConfigError> {
        if section.common.prompt_only {
            return Ok(None);
        }
        let section = section.clone().with_dialects(self.dialects.clone());
        self.kind_of(&section)?.batch.as_ref().map_or(Ok(None), |batch| batch(&section))
    }

    /// Returns the targets of a configuration in order, without probing their servers.
    ///
    /// # Errors
    /// [`ConfigError`] if one of them cannot be created: an unknown kind, a missing key, an invalid address.
    pub fn backends(&self, config: &Config) -> Result<Vec<Backend>, ConfigError> {
        let list = config.target_list();
        let made = self.usable(config, list)?.into_iter();
        let backends = made.map(|(made, section)| self.backend_of(made, section));
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
        self.backend_of(self.make(section)?, section)
    }

    /// Returns the backend of a provider that [`make`](Self::make) created, with the rules, and with the retry settings and the retry
    /// policy of the configuration.
    ///
    /// # Errors
    /// [`ConfigError`] if `modes` names an unknown dialect, or `retry_policy` an unknown policy.
    pub fn backend_of(&self, made: Made, section: &Section) -> Result<Backend, ConfigError> {
        let backend = made.backend(section, &self.dialects)?.with_rules(self.rules.clone());
        let backend = backend.with_retries(section.retries());
        let Some(name) = section.retry_policy() else { return Ok(backend) };
        let policy = self.policies.get(name).ok_or_else(|| {
            let names: Vec<&str> = self.policies.keys().map(String::as_str).collect();
            let message = format!("there is no retry policy `{name}`");
            section.retry_policy_error(&match names.is_empty() {
                true => format!("{message}: this program registers none"),
                false => advised(&message, name, &names),
            })
        })?;
        Ok(backend.with_retry_policy(Arc::clone(policy)))
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
            backends.push(self.backend_of(made.probed().await, section)?);
        }
        Ok(in_turns(backends, list))
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
