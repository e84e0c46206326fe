use std::path::Path;
use std::time::Duration;

use formwork_core::{Error, ErrorKind, Policy, Temperature};
use formwork_extract::{Backend, Extractor, ExtractorBuilder};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::config::{Config, Defaults};
use crate::providers::Providers;

/// The providers of a configuration, ready to be asked.
///
/// ```
/// # async fn doc() -> Result<(), formwork::Error> {
/// use formwork::config::Config;
/// use formwork::{Extractor, Setup, providers::Providers};
///
/// let config = Config::from_toml("[providers.mine]\nkind = \"ollama\"\nmodel = \"qwen3:8b\"\nprobe = false")?;
/// let setup = Setup::open(&config, &Providers::builtin()).await?;
/// let extractor = setup.extractor::<serde_json::Value>();
/// # let _ = extractor;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Setup {
    backends: Vec<Backend>,
    defaults: Defaults,
}

impl Setup {
    /// Finds the configuration, as [`Config::find`] does, and opens what it names. Without one it is the model in this
    /// process, if this build has one.
    ///
    /// # Errors
    /// [`ErrorKind::Config`], if the configuration cannot be used, or there is none and no model in this build.
    pub async fn find(file: Option<&Path>) -> Result<Self, Error> {
        let providers = Providers::builtin();
        if let Some(config) = Config::find(file)? {
            return Self::open(&config, &providers).await;
        }
        if !cfg!(feature = "local") {
            let message = "there is no formwork.toml here or above, and this build has no model in it (feature `local`)";
            return Err(Error::new(ErrorKind::Config, message));
        }
        Self::open(&Config::from_toml("[providers.local]\nkind = \"local\"")?, &providers).await
    }

    /// Opens what a configuration names, and asks servers what they can do where their kind says so.
    ///
    /// # Errors
    /// [`ErrorKind::Config`], if a provider cannot be made.
    pub async fn open(config: &Config, providers: &Providers) -> Result<Self, Error> {
        Ok(Self { backends: providers.probed(config).await?, defaults: config.defaults() })
    }

    /// The providers, in the order in which they are asked.
    pub fn backends(&self) -> &[Backend] {
        &self.backends
    }

    /// An extractor for a type, with the configuration's providers and defaults.
    pub fn extractor<T: JsonSchema + DeserializeOwned + Send + 'static>(&self) -> ExtractorBuilder<T> {
        self.apply(Extractor::builder())
    }

    /// Any extractor with the configuration's providers and defaults.
    pub fn apply<T: DeserializeOwned + Send + 'static>(
        &self,
        mut builder: ExtractorBuilder<T>,
    ) -> ExtractorBuilder<T> {
        let Defaults { max_attempts, temperature, max_tokens, timeout_seconds } = self.defaults;
        if max_attempts.is_some() || temperature.is_some() {
            let mut policy = max_attempts.map_or_else(Policy::default, Policy::new);
            if let Some(temperature) = temperature {
                policy = policy.with_temperature(Temperature::Steps(vec![temperature]));
            }
            builder = builder.with_policy(policy);
        }
        if let Some(tokens) = max_tokens {
            builder = builder.with_max_tokens(tokens);
        }
        let deadline = timeout_seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        if let Some(deadline) = deadline {
            builder = builder.with_deadline(deadline);
        }
        self.backends.iter().cloned().fold(builder, ExtractorBuilder::with_target)
    }
}
