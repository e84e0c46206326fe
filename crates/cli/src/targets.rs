//! Selects the models of a command: by the command line, else by the configuration, else the local model.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};

use formwork::config::{Config, Defaults, Named as Meant, Section, TargetList};
use formwork::providers::{Made, Providers, in_turns, local_settings};
use formwork_core::ModelSettings;
use formwork_extract::{Backend, Budget};
use formwork_ledger::{Ledger, Recorder};
use serde_json::Value;

use crate::exit::Failed;
use crate::flags::within;
use crate::stderr::say;
use crate::{configuration, model};

/// The environment variable with the name of a model.
const MODEL: &str = "FORMWORK_MODEL";

// The selection of models on the command line.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Named {
    /// Configuration file [default: formwork.toml in this folder or a parent folder, see docs/models.md]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Use only this provider: a provider, list or alias of the configuration, or a kind such as `ollama`
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// The model: KIND/MODEL such as `openai/gpt-5.4-mini`, an alias of the configuration, a name of `formwork models`, or a
    /// .gguf file; an alias has precedence over a local model of this name. With --provider, the name of a model of that provider. (FORMWORK_MODEL changes only the model of the first
    /// provider)
    #[arg(long, short, value_parser = model_name)]
    model: Option<String>,
}

// The retries of failed calls.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct RetryArgs {
    /// Maximum number of retries of a failed call; 0 turns retries off [default: `retries` of the configuration, else 3]
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub(crate) retries: Option<u32>,
    /// Seconds before the retries of a failed call; the last number repeats [default: `retry_delays` of the configuration, else
    /// 2,4,8]
    #[arg(long, value_name = "SECONDS", value_delimiter = ',', value_parser = delay)]
    pub(crate) retry_delays: Option<Vec<f64>>,
}

impl RetryArgs {
    /// Returns these settings, else those that an earlier process kept under the same names.
    pub(crate) fn or_kept(self, kept: &Value) -> Self {
        let retries = || kept.get("retries")?.as_u64()?.try_into().ok();
        let delays = || kept.get("retry_delays")?.as_array()?.iter().map(Value::as_f64).collect();
        Self { retries: self.retries.or_else(retries), retry_delays: self.retry_delays.or_else(delays) }
    }

    /// Returns the backend with these settings in place of those of the configuration.
    pub(crate) fn set(&self, backend: Backend) -> Backend {
        let (retries, retry_delays) = (self.retries, self.retry_delays.clone());
        backend.with_retries(Defaults { retries, retry_delays, ..Defaults::default() }.retries())
    }
}

fn delay(text: &str) -> Result<f64, String> {
    within(text.trim(), 0.0..=86_400.0, "expected seconds from 0 to 86400, such as 1,2.5")
}

// The selection of models, the cost limit and the retries.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Targets {
    #[command(flatten)]
    named: Named,
    /// Maximum cost of all calls together in US dollars. The maximum cost of each call is reserved before the call, so every
    /// provider needs a price [default: `max_cost_usd` of the configuration, else no limit]
    #[arg(long, value_name = "USD", value_parser = dollars)]
    max_cost: Option<f64>,
    /// A setting of the models, such as `effort=low`, `verbosity=low`, `prompt_cache=1h` or `stop=["END"]` (repeatable); see `settings` in
    /// docs/models.md [default: those of the configuration]
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    settings: Vec<ModelSettings>,
    #[command(flatten)]
    retries: RetryArgs,
    /// The budget of this limit, shared by all targets of the command.
    #[arg(skip)]
    budget: Arc<OnceLock<Option<Budget>>>,
}

/// Parses one setting of a model. A value that is no JSON is a text.
fn setting(text: &str) -> Result<ModelSettings, String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE, such as effort=low")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
    let settings = Value::from_iter([(name, value)]);
    serde_json::from_value(settings).map_err(|error| format!("`{name}`: {error}"))
}

pub(crate) fn dollars(text: &str) -> Result<f64, String> {
    let number = text.strip_prefix('$').unwrap_or(text);
    within(number, 0.0..=1e6, "expected US dollars, from 0 to 1000000, such as 0.05")
}

fn model_name(text: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err("the name of a model is empty".to_owned()) } else { Ok(text.to_owned()) }
}

/// The opened providers, and the defaults of the configuration.
pub(crate) struct Opened {
    pub(crate) backends: Vec<Backend>,
    pub(crate) defaults: Defaults,
    /// Whether one of them is a model in this process.
    pub(crate) is_in_process: bool,
    /// The names of the targets with their models.
    models: Vec<(String, String)>,
    /// The settings of the models, as JSON.
    pub(crate) settings: String,
    /// The name of the default local model, if it is the first target.
    default_model: Option<&'static str>,
    /// A line about a key in the environment that the default model does not use.
    unused_key: Option<String>,
    /// Whether the only target is a server on this machine.
    pub(crate) is_alone_on_loopback: bool,
    /// Whether the model of a target is very small: the default model, or one that the registry marks as tiny.
    pub(crate) is_tiny: bool,
}

impl Opened {
    /// Returns an observer that records runs of these targets, if there is a ledger to record them in.
    pub(crate) fn recorder(&self, ledger: Option<Ledger>, source: &'static str) -> Option<Recorder> {
        let recorder = Recorder::new(ledger?, source);
        Some(
            self.models.iter().fold(recorder, |recorder, (target, model)| recorder.with_model(target, model)),
        )
    }

    /// Returns the models by the names of their targets.
    pub(crate) fn models(&self) -> HashMap<String, String> {
        self.models.iter().cloned().collect()
    }

    /// Prints once per process that the default model is very small, if it is the first target.
    pub(crate) fn say_how_small_the_default_model_is(&self) {
        static SAID: Once = Once::new();
        if let Some(name) = self.default_model {
            SAID.call_once(|| {
                say!(
                    "note: {name}, the default model, is very small: its answers are valid and often wrong. Name a better \
                     one with -m VENDOR/MODEL, such as -m openai/gpt-5.4-mini, or -m ollama/NAME"
                );
                if let Some(unused) = &self.unused_key {
                    say!("note: {unused}");
                }
            });
        }
    }

    /// Prints a warning that the default model cannot judge, if it is the first target. `so` is the consequence.
    pub(crate) fn say_what_the_default_model_is(&self, so: &str) {
        if let Some(name) = self.default_model {
            say!(
                "note: {name}, the default model, gives valid answers but cannot judge: {so}. Use a larger model, for \
                 example --provider ollama --model qwen3:8b"
            );
        }
    }
}

/// The selected sections of a configuration, in order.
pub(crate) struct Chosen {
    pub(crate) sections: Vec<Section>,
    pub(crate) defaults: Defaults,
    /// The list that contains the sections, if they were selected by a list.
    list: Option<TargetList>,
    /// Notes about the source of the selection, one line each.
    notes: Vec<String>,
}

impl Chosen {
    /// Prints the source of the selection on standard error. The targets of a command often have the same source, which is
    /// printed once.
    pub(crate) fn tell(&self) {
        static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
        let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
        self.notes.iter().filter(|note| said.insert((*note).clone())).for_each(|note| say!("{note}"));
    }
}

impl Targets {
    /// Creates the providers and probes their servers. Prints the source of the selection if `verbose`.
    pub(crate) async fn open(&self, providers: &Providers, verbose: bool) -> Result<Opened, Failed> {
        self.open_as(providers, verbose, |section| section).await
    }

    /// Opens the targets like `open`, after a change of each section by the application.
    pub(crate) async fn open_as(
        &self,
        providers: &Providers,
        verbose: bool,
        adapt: impl Fn(Section) -> Section,
    ) -> Result<Opened, Failed> {
        let chosen = self.named.choose(providers)?;
        if verbose {
            chosen.tell();
        }
        let limits =
            Defaults { max_cost_usd: self.max_cost, ..Defaults::default() }.or(chosen.defaults.clone());
        let budget = self.budget.get_or_init(|| limits.budget()).as_ref();
        let default_model = chosen.sections.first().and_then(model::default_of);
        let is_in_process = chosen.sections.iter().any(|section| section.common.kind == "local");
        let (mut backends, mut models, mut without_key) = (Vec::new(), Vec::new(), Vec::new());
        let mut is_tiny = default_model.is_some();
        let (mut on_loopback, mut all_settings) = (Vec::new(), Vec::new());
        let settings = self.settings.iter().cloned().fold(ModelSettings::default(), |all, one| one.or(all));
        for section in chosen.sections.into_iter().map(adapt) {
            let section = section.with_settings(settings.clone());
            let mut made = match make(&section, providers).await {
                Ok(made) => made,
                Err(failed) if failed.lacks_key() => {
                    without_key.push(failed);
                    continue;
                }
                Err(failed) => return Err(failed),
            };
            // A limit without a price is an error before any request.
            if budget.is_some() && made.price(&section).is_none() {
                return Err(unpriced(&section, &made.model));
            }
            // A server that does not respond to the probe fails later, at its first call.
            if let Ok(Some(weaker)) = made.ask_server(false).await {
                say!("{}: {weaker}", section.name);
            }
            on_loopback.push(made.server_address().is_some_and(formwork::http::is_loopback));
            let model = made.model.clone();
            all_settings.push(section.settings());
            is_tiny |= section.registry().is_tiny(&model);
            let backend = self.retries.set(providers.backend_of(made, &section).map_err(Failed::usage)?);
            models.push((backend.name().to_owned(), model));
            backends.push(match budget {
                Some(budget) => backend.with_budget(budget.clone()),
                None => backend,
            });
        }
        if backends.is_empty() && !without_key.is_empty() {
            return Err(without_key.swap_remove(0));
        }
        for failed in without_key {
            say!("warning: {failed}; the other providers are used");
        }
        if let Some(list) = &chosen.list {
            backends = in_turns(backends, list);
        }
        let unused_key = default_model.and_then(|_| model::unused_key(providers));
        let is_alone_on_loopback = on_loopback == [true];
        Ok(Opened {
            backends,
            defaults: chosen.defaults,
            settings: serde_json::to_string(&all_settings).unwrap_or_default(),
            is_in_process,
            models,
            default_model,
            unused_key,
            is_alone_on_loopback,
            is_tiny,
        })
    }

    /// Returns these models with these retries, and with a limit of money for all calls together.
    pub(crate) fn limited(named: Named, retries: RetryArgs, max_cost: Option<f64>) -> Self {
        Self { named, max_cost, settings: Vec::new(), retries, budget: Arc::default() }
    }

    /// Returns the targets of each named provider and of each named model, or those of the configuration if none is named. They share one
    /// limit of money.
    pub(crate) fn each(
        config: Option<PathBuf>,
        providers: &[String],
        models: &[String],
        retries: RetryArgs,
        max_cost: Option<f64>,
    ) -> Vec<(String, Self)> {
        let none = Named { config, provider: None, model: None };
        let provider = |name: &String| (name.clone(), Named { provider: Some(name.clone()), ..none.clone() });
        let model = |name: &String| (name.clone(), Named { model: Some(name.clone()), ..none.clone() });
        let mut named: Vec<_> = providers.iter().map(provider).chain(models.iter().map(model)).collect();
        if named.is_empty() {
            named.push(("default".to_owned(), none));
        }
        let budget: Arc<OnceLock<Option<Budget>>> = Arc::default();
        let targets = |(name, named)| {
            let settings = Vec::new();
            (name, Self { named, max_cost, settings, retries: retries.clone(), budget: Arc::clone(&budget) })
        };
        named.into_iter().map(targets).collect()
    }

    /// Returns the targets of each of these names, models or providers, with the same settings and one limit of money.
    pub(crate) fn split(&self, names: &[String]) -> Vec<(String, Self)> {
        let named = |name: &String| {
            // A file or folder that happens to have the name of a provider is no model.
            let is_model = name.contains('/') || model::is_named(name);
            let (model, provider) =
                if is_model { (Some(name.clone()), None) } else { (None, Some(name.clone())) };
            Named { config: self.named.config.clone(), provider, model }
        };
        names.iter().map(|name| (name.clone(), Self { named: named(name), ..self.clone() })).collect()
    }

    /// Returns the name by which the command line selects the targets; `default` if it names none.
    pub(crate) fn name(&self) -> &str {
        self.named.model.as_deref().or(self.named.provider.as_deref()).unwrap_or("default")
    }

    /// Returns these targets, or those of another provider if the command line names no provider and no model.
    pub(crate) fn or_provider(&self, name: Option<&str>) -> Self {
        let mut targets = self.clone();
        if targets.named.provider.is_none() && targets.named.model.is_none() {
            targets.named.provider = name.map(ToOwned::to_owned);
        }
        targets
    }
}

impl Named {
    /// Returns whether there is any name.
    pub(crate) const fn is_given(&self) -> bool {
        self.config.is_some() || self.provider.is_some() || self.model.is_some()
    }

    /// Returns the names as they are kept for a later process: the configuration's file by its whole path.
    pub(crate) fn kept(&self) -> [Option<String>; 3] {
        let whole = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let config = self.config.as_ref().map(|path| whole(path).display().to_string());
        [config, self.provider.clone(), self.model.clone()]
    }

    /// Returns the configuration file that the command line names.
    pub(crate) fn config(&self) -> Option<&Path> {
        self.config.as_deref()
    }

    /// Returns these names with those that were kept: a model keeps the provider and the configuration, a provider keeps the
    /// configuration, and a configuration or a local model keeps nothing.
    pub(crate) fn or_kept(self, [config, provider, model]: [Option<String>; 3]) -> Self {
        let is_local =
            self.provider.is_none() && self.model.as_ref().is_some_and(|model| model::is_known(model));
        if self.config.is_some() || is_local {
            return self;
        }
        let config = config.map(PathBuf::from);
        match (self.provider, self.model) {
            (None, None) => Self { config, provider, model },
            (None, Some(model)) => {
                Self { config, provider: provider.filter(|_| !model.contains('/')), model: Some(model) }
            }
            (provider, model) => Self { config, provider, model },
        }
    }

    /// Returns the selection of one provider by its name or kind.
    #[cfg(feature = "local")]
    pub(crate) fn of(config: Option<&Path>, provider: &str) -> Self {
        Self { config: config.map(ToOwned::to_owned), provider: Some(provider.to_owned()), model: None }
    }

    /// Returns every provider of the configuration, or the one that the command line names.
    pub(crate) fn choose_all(&self, providers: &Providers) -> Result<Chosen, Failed> {
        let mut chosen = self.choose(providers)?;
        let is_in_process = self.config.is_none() && self.model.is_some();
        if self.provider.is_none()
            && !is_in_process
            && let Some(config) = configuration::find(self.config.as_deref(), providers)?
        {
            let known: Vec<String> = chosen.sections.iter().map(|section| section.name.clone()).collect();
            let others = config.sections().iter().filter(|section| !known.contains(&section.name));
            chosen.sections.extend(others.cloned());
        }
        Ok(chosen)
    }

    /// Returns the alias of the configuration that `--model` names, if it is one. It has precedence over a local model of
    /// this name.
    fn alias(&self, providers: &Providers) -> Result<Option<String>, Failed> {
        let alias = self.model.as_ref().filter(|_| self.provider.is_none());
        let Some(alias) = alias.filter(|model| !model.contains('/')) else { return Ok(None) };
        let config = match configuration::find(self.config.as_deref(), providers) {
            Ok(config) => config,
            // A file that happens to be in this folder does not stop the use of a local model.
            Err(_) if self.config.is_none() && model::is_known(alias) => None,
            Err(failed) => return Err(failed),
        };
        let is_alias = config.is_some_and(|config| config.aliases().contains_key(alias));
        Ok(is_alias.then(|| alias.clone()))
    }

    /// Returns the selected providers, in order.
    pub(crate) fn choose(&self, providers: &Providers) -> Result<Chosen, Failed> {
        if let Some(alias) = self.alias(providers)? {
            let config = self.config.clone();
            return Self { config, provider: Some(alias), model: None }.choose(providers);
        }
        let Self { config, provider, model } = self;
        let named = model.as_deref().filter(|_| provider.is_none());
        let named = named.and_then(|model| provider_in(model, providers));
        let (provider, model) = match named {
            Some((provider, model)) => (Some(provider), Some(model)),
            None => (provider.as_deref(), model.as_deref()),
        };
        // A model without a provider is a local model, independent of any configuration file.
        let is_in_process = config.is_none() && provider.is_none() && model.is_some();
        let config = match is_in_process {
            true => None,
            false => configuration::find(config.as_deref(), providers)?,
        };
        let mut notes = vec![match &config {
            Some(config) => format!("configuration: {}", config.file()),
            None if is_in_process => {
                "configuration: none, because --model without --provider is a model in this process"
                    .to_owned()
            }
            None => "configuration: none was found".to_owned(),
        }];
        notes.extend(
            config.iter().flat_map(Config::overrides).map(|source| format!("configuration: {source}")),
        );
        let defaults = config.as_ref().map(Config::defaults).unwrap_or_default();
        let (mut sections, list) = match (&config, provider) {
            (Some(config), None) => of_list(config, config.target_list())?,
            (Some(config), Some(name)) => match config.named(name) {
                Ok(Meant::Provider(section)) => (vec![section.clone()], None),
                Ok(Meant::List(list)) => of_list(config, list)?,
                Ok(Meant::Model(alias_target)) => {
                    (vec![of_alias(alias_target, Some(config), providers)?], None)
                }
                Err(_) => (vec![of_kind(name, Some(config), providers)?], None),
            },
            (None, name) => (vec![of_kind(name.unwrap_or("local"), None, providers)?], None),
        };
        let of_environment = std::env::var(MODEL).ok().filter(|model| !model.trim().is_empty());
        match (model, of_environment, sections.as_mut_slice()) {
            (Some(model), _, [one]) => *one = one.clone().with_model(model),
            (Some(_), ..) => {
                return Err(Failed::usage("--model needs one provider: name it with --provider"));
            }
            (None, Some(model), [first, ..]) => {
                notes.push(format!("model: {model} instead of the one of `{}` ({MODEL})", first.name));
                *first = first.clone().with_model_from(&format!("the environment variable {MODEL}"), &model);
            }
            (None, ..) => {}
        }
        Ok(Chosen { sections, defaults, list, notes })
    }
}

/// Returns the sections of a list, and the list itself.
fn of_list(config: &Config, list: &TargetList) -> Result<(Vec<Section>, Option<TargetList>), Failed> {
    let sections = list.targets.iter().map(|name| config.section(name).cloned());
    Ok((sections.collect::<Result<_, _>>().map_err(Failed::usage)?, Some(list.clone())))
}

/// Returns the section for an alias of the form KIND/MODEL.
pub(crate) fn of_alias(
    alias_target: &str,
    config: Option<&Config>,
    providers: &Providers,
) -> Result<Section, Failed> {
    let (kind, model) = alias_target.split_once('/').unwrap_or((alias_target, ""));
    of_kind(kind, config, providers)?;
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let text =
        format!("[providers.{}]\nkind = {}\nmodel = {}\n", quoted(alias_target), quoted(kind), quoted(model));
    let config = Config::from_toml(&text).map_err(Failed::usage)?;
    config.section(alias_target).cloned().map_err(Failed::usage)
}

/// Splits `openai/gpt-5.4-mini` into a kind and a model. A path that exists or ends in `.gguf`, a model of Hugging
/// Face (`hf:`) and the kind `local` are local models, so that a mistyped path does not send a text to a vendor.
fn provider_in<'m>(model: &'m str, providers: &Providers) -> Option<(&'m str, &'m str)> {
    let (kind, name) = model.split_once('/')?;
    let path = Path::new(model);
    let is_weights =
        path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gguf")) || path.exists();
    let is_in_process = kind == "local" || model.starts_with("hf:") || is_weights;
    (!is_in_process && !name.is_empty() && providers.kind(kind).is_ok()).then_some((kind, name))
}

/// Returns a section with only a kind.
fn of_kind(kind: &str, config: Option<&Config>, providers: &Providers) -> Result<Section, Failed> {
    if let Err(message) = providers.kind(kind).map(|_| ()) {
        // If there is a configuration, the user probably meant one of its names.
        let named = config.and_then(|config| config.named(kind).err());
        return Err(Failed::usage(named.map_or(message, |error| error.to_string())));
    }
    let text = format!("[providers.{kind}]\nkind = \"{kind}\"\n");
    let config = Config::from_toml(&text).map_err(Failed::usage)?;
    config.section(kind).cloned().map_err(Failed::usage)
}

/// Returns the failure for a cost limit with a model whose price is unknown.
fn unpriced(section: &Section, model: &str) -> Failed {
    Failed::usage(format!(
        "the price of `{model}` at the provider `{}` is not known, so no limit of money can be kept: add `price = {{ input = \
         0.15, output = 0.6 }}` (US dollars for a million tokens) to its section of the configuration",
        section.name
    ))
}

/// Creates the provider of a section.
pub(crate) async fn make(section: &Section, providers: &Providers) -> Result<Made, Failed> {
    if section.common.kind == "local" {
        return local(section, providers).await;
    }
    providers.make(section).map_err(|error| {
        let message = error.to_string();
        // The section comes from the command line, so the message must not mention a file.
        match message.strip_prefix("the configuration:") {
            Some(reason) if reason.contains("missing field `model`") => {
                Failed::usage(format!("--provider {} needs a model: add --model NAME", section.name))
            }
            _ if error.lacks_key() => Failed::usage(message).of_key(),
            _ => Failed::usage(message),
        }
    })
}

/// Opens a local model, with a progress bar and support for Ctrl-C.
async fn local(section: &Section, providers: &Providers) -> Result<Made, Failed> {
    let (model, context) = local_settings(section).map_err(Failed::usage)?;
    let provider = model::open(&model, context, providers).await?;
    Ok(Made::in_process(provider, model))
}
