//! Which models a command asks: what the command line says, the configuration, or the model in this process.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use formwork::config::{Config, Defaults, Section};
use formwork::providers::{Made, Providers};
use formwork_extract::Backend;
use formwork_ledger::{Ledger, Recorder};

use crate::exit::Failed;
use crate::model;
use crate::stderr::say;

/// The environment variable with the name of a model.
const MODEL: &str = "FORMWORK_MODEL";

/// Which models are asked.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Targets {
    /// The file that says which models are asked [default: formwork.toml here or above, see README]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Ask this provider alone: a name of the configuration, or a kind such as `ollama`
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// The model, with its kind of provider if none is named (`openai/gpt-4o-mini`); without a kind one of `formwork models`
    /// or a .gguf file (FORMWORK_MODEL changes the model of the provider that is asked first, and nothing else)
    #[arg(long, short, value_parser = model_name)]
    model: Option<String>,
}

fn model_name(text: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err("the name of a model is empty".to_owned()) } else { Ok(text.to_owned()) }
}

/// Providers that can be asked, and how the configuration would have it.
pub(crate) struct Opened {
    pub(crate) backends: Vec<Backend>,
    pub(crate) defaults: Defaults,
    /// The names of the targets, each with its model.
    models: Vec<(String, String)>,
    /// The name of the default model in this process, if that is asked first.
    default_model: Option<&'static str>,
}

impl Opened {
    /// Returns an observer that records runs of these targets, if there is a ledger to record them in.
    pub(crate) fn recorder(&self, ledger: Option<Ledger>, source: &str) -> Option<Recorder> {
        let recorder = Recorder::new(ledger?, source);
        Some(
            self.models.iter().fold(recorder, |recorder, (target, model)| recorder.with_model(target, model)),
        )
    }

    /// Returns the models of the targets, by the names of these.
    pub(crate) fn models(&self) -> HashMap<String, String> {
        self.models.iter().cloned().collect()
    }

    /// Says on standard error that the default model cannot judge, if it is asked first, and what that means (`so`).
    pub(crate) fn say_what_the_default_model_is(&self, so: &str) {
        if let Some(name) = self.default_model {
            say!(
                "note: {name}, the default model, keeps to the form and cannot judge: {so}. Name a model that can, for \
                 example --provider ollama --model qwen3:8b"
            );
        }
    }
}

/// The sections of a configuration that are asked, in order.
pub(crate) struct Chosen {
    pub(crate) sections: Vec<Section>,
    pub(crate) defaults: Defaults,
    /// Where the choice comes from, a line each, for people.
    notes: Vec<String>,
}

impl Chosen {
    /// Says on standard error where the choice comes from.
    pub(crate) fn tell(&self) {
        self.notes.iter().for_each(|note| say!("{note}"));
    }
}

impl Targets {
    /// One provider by its name or kind.
    #[cfg(feature = "local")]
    pub(crate) fn named(config: Option<&std::path::Path>, provider: &str) -> Self {
        Self { config: config.map(ToOwned::to_owned), provider: Some(provider.to_owned()), model: None }
    }

    /// Makes the providers, and asks their servers what they can do. If `verbose`, it says where the choice comes from.
    pub(crate) async fn open(&self, providers: &Providers, verbose: bool) -> Result<Opened, Failed> {
        self.open_as(providers, verbose, |section| section).await
    }

    /// The same, where an application has a say in how providers are asked.
    pub(crate) async fn open_as(
        &self,
        providers: &Providers,
        verbose: bool,
        adapt: impl Fn(Section) -> Section,
    ) -> Result<Opened, Failed> {
        let chosen = self.choose(providers)?;
        if verbose {
            chosen.tell();
        }
        let default_model = chosen.sections.first().and_then(model::default_of);
        let (mut backends, mut models) = (Vec::new(), Vec::new());
        for section in chosen.sections.into_iter().map(adapt) {
            let mut made = make(&section, providers).await?;
            // A server that cannot be asked is found out when it is called.
            if let Ok(Some(weaker)) = made.ask_server(false).await {
                say!("{}: {weaker}", section.name);
            }
            let model = made.model.clone();
            let backend = made.backend(&section, providers.dialects()).map_err(Failed::usage)?;
            models.push((backend.name().to_owned(), model));
            backends.push(backend);
        }
        Ok(Opened { backends, defaults: chosen.defaults, models, default_model })
    }

    /// The same targets, but of this provider, where the command line names neither one nor a model.
    pub(crate) fn or_provider(&self, name: Option<&str>) -> Self {
        let mut targets = self.clone();
        if targets.provider.is_none() && targets.model.is_none() {
            targets.provider = name.map(ToOwned::to_owned);
        }
        targets
    }

    /// Every provider of the configuration, those that are asked first, unless the command line names one.
    pub(crate) fn choose_all(&self, providers: &Providers) -> Result<Chosen, Failed> {
        let mut chosen = self.choose(providers)?;
        let is_in_process = self.config.is_none() && self.model.is_some();
        if self.provider.is_none()
            && !is_in_process
            && let Some(config) =
                Config::find_with(self.config.as_deref(), providers.dialects()).map_err(Failed::usage)?
        {
            let known: Vec<String> = chosen.sections.iter().map(|section| section.name.clone()).collect();
            let others = config.sections().iter().filter(|section| !known.contains(&section.name));
            chosen.sections.extend(others.cloned());
        }
        Ok(chosen)
    }

    /// The providers to ask, in order.
    pub(crate) fn choose(&self, providers: &Providers) -> Result<Chosen, Failed> {
        let Self { config, provider, model } = self;
        let named = model.as_deref().filter(|_| provider.is_none());
        let named = named.and_then(|model| provider_in(model, providers));
        let (provider, model) = match named {
            Some((provider, model)) => (Some(provider), Some(model)),
            None => (provider.as_deref(), model.as_deref()),
        };
        // A model that is named alone is the one in this process, wherever the command is run.
        let is_in_process = config.is_none() && provider.is_none() && model.is_some();
        let config = match is_in_process {
            true => None,
            false => Config::find_with(config.as_deref(), providers.dialects()).map_err(Failed::usage)?,
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
        let mut sections = match (&config, provider) {
            (Some(config), Some(name)) if config.sections().iter().any(|section| section.name == name) => {
                vec![config.section(name).map_err(Failed::usage)?.clone()]
            }
            (config, Some(kind)) => vec![of_kind(kind, config.as_ref(), providers)?],
            (Some(config), None) => {
                let targets = config.targets().iter().map(|name| config.section(name).cloned());
                targets.collect::<Result<Vec<_>, _>>().map_err(Failed::usage)?
            }
            (None, None) => vec![of_kind("local", None, providers)?],
        };
        let of_environment = std::env::var(MODEL).ok().filter(|model| !model.trim().is_empty());
        match (model, of_environment, sections.as_mut_slice()) {
            (Some(model), _, [one]) => *one = one.clone().with_model(model),
            (Some(_), ..) => {
                return Err(Failed::usage("--model is of one provider: name it with --provider"));
            }
            (None, Some(model), [first, ..]) => {
                notes.push(format!("model: {model} instead of the one of `{}` ({MODEL})", first.name));
                *first = first.clone().with_model_from(&format!("the environment variable {MODEL}"), &model);
            }
            (None, ..) => {}
        }
        Ok(Chosen { sections, defaults, notes })
    }
}

/// Splits `openai/gpt-4o-mini` into a kind of providers and a model. A path that exists or ends in `.gguf`, a model of Hugging
/// Face (`hf:`) and the kind `local` are models in this process: a mistyped path must not send a text to a vendor.
fn provider_in<'m>(model: &'m str, providers: &Providers) -> Option<(&'m str, &'m str)> {
    let (kind, name) = model.split_once('/')?;
    let path = Path::new(model);
    let is_weights =
        path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gguf")) || path.exists();
    let is_in_process = kind == "local" || model.starts_with("hf:") || is_weights;
    (!is_in_process && !name.is_empty() && providers.kind(kind).is_ok()).then_some((kind, name))
}

/// A provider of this kind that no configuration says more of.
fn of_kind(kind: &str, config: Option<&Config>, providers: &Providers) -> Result<Section, Failed> {
    if let Err(message) = providers.kind(kind).map(|_| ()) {
        // Where there is a configuration, the name was most likely to be one of its.
        let named = config.and_then(|config| config.section(kind).err());
        return Err(Failed::usage(named.map_or(message, |error| error.to_string())));
    }
    let text = format!("[providers.{kind}]\nkind = \"{kind}\"\n");
    let config = Config::from_toml(&text).map_err(Failed::usage)?;
    config.section(kind).cloned().map_err(Failed::usage)
}

/// Makes the provider of a section.
pub(crate) async fn make(section: &Section, providers: &Providers) -> Result<Made, Failed> {
    if section.common.kind == "local" {
        return local(section).await;
    }
    providers.make(section).map_err(|error| {
        let message = error.to_string();
        // No file is to blame for what the command line leaves out.
        match message.strip_prefix("the configuration:") {
            Some(reason) if reason.contains("missing field `model`") => {
                Failed::usage(format!("--provider {} needs a model: add --model NAME", section.name))
            }
            _ => Failed::usage(message),
        }
    })
}

/// A model in this process; loading it shows how far it is, and can be interrupted.
async fn local(section: &Section) -> Result<Made, Failed> {
    let model = model::of(section).map_err(Failed::usage)?;
    let provider = model::open(&model).await?;
    Ok(Made { provider, system: "formwork-local".to_owned(), model, address: None, probe: None })
}
