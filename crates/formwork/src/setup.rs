use std::path::Path;

use formwork_core::{Error, ErrorKind};
use formwork_extract::{Backend, Extractor, ExtractorBuilder};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::config::{Config, Defaults};
use crate::providers::Providers;

/// The providers and defaults of a configuration.
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
    /// Finds the configuration as [`Config::find`] does, and creates its providers. Without a configuration the only
    /// provider is the model in this process, if this build includes it.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the configuration is invalid, or there is none and this build includes no model.
    pub async fn find(file: Option<&Path>) -> Result<Self, Error> {
        Self::find_with(file, &Providers::builtin()).await
    }

    /// Finds the configuration as [`find`](Self::find) does, with kinds and dialects of your own.
    ///
    /// # Errors
    /// The errors of [`find`](Self::find).
    pub async fn find_with(file: Option<&Path>, providers: &Providers) -> Result<Self, Error> {
        if let Some(config) = Config::find_with(file, providers.dialects())? {
            return Self::open(&config, providers).await;
        }
        if !cfg!(feature = "local") {
            let message = "no formwork.toml was found in this project or in the user's folder for configuration, and this \
                           build has no model in it (feature `local`)";
            return Err(Error::new(ErrorKind::Config, message));
        }
        Self::open(&Config::in_process()?, providers).await
    }

    /// Creates the providers of a configuration, and probes their servers if the kind supports it. With `calibration` in `[defaults]`, the
    /// confidence in values is a probability, if the file has a calibration for `default` or for the target that answers.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if a provider cannot be created, or the file of the calibration cannot be read.
    pub async fn open(config: &Config, providers: &Providers) -> Result<Self, Error> {
        let defaults = config.defaults().with_calibrations(Some("default"))?;
        let mut backends = providers.probed(config).await?;
        if let Some(budget) = defaults.budget() {
            backends = backends.into_iter().map(|backend| backend.with_budget(budget.clone())).collect();
        }
        Ok(Self { backends, defaults })
    }

    /// Returns the providers, in the order of calls.
    pub fn backends(&self) -> &[Backend] {
        &self.backends
    }

    /// Returns a builder of an extractor for a type, with the configuration's providers and defaults.
    pub fn extractor<T: JsonSchema + DeserializeOwned + Send + 'static>(&self) -> ExtractorBuilder<T> {
        self.apply(Extractor::builder())
    }

    /// Adds the configuration's providers and defaults to any extractor's builder.
    pub fn apply<T: DeserializeOwned + Send + 'static>(
        &self,
        builder: ExtractorBuilder<T>,
    ) -> ExtractorBuilder<T> {
        let builder = self.defaults.apply(builder);
        self.backends.iter().cloned().fold(builder, ExtractorBuilder::with_target)
    }
}
