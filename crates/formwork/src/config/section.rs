use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use formwork_core::{ModelSettings, Retries, Thresholds};
use formwork_dialect::registry::Registry;
use formwork_dialect::{Dialect, Dialects};
use serde::de::DeserializeOwned;
#[cfg(feature = "http")]
use toml::Spanned;
#[cfg(feature = "http")]
use toml::de::DeValue;

use super::common::retry_settings;
use super::document::Document;
use super::overlay::Edit;
use super::{Common, ConfigError, Defaults, Redaction};

/// One provider of a configuration.
///
/// ```
/// use formwork::config::Config;
///
/// #[derive(serde::Deserialize)]
/// struct Acme {
///     model: String,
///     tier: u8,
/// }
///
/// let config = Config::from_toml("[providers.mine]\nkind = \"acme\"\nmodel = \"a-1\"\ntier = 2")?;
/// let section = config.section("mine")?.clone().with_model("a-2");
/// let own: Acme = section.read()?;
/// assert_eq!((own.model.as_str(), own.tier), ("a-2", 2));
/// let error = section.error("tier 2 has no tools");
/// assert_eq!(error.to_string(), "the configuration:1:1: provider `mine`: tier 2 has no tools");
/// # Ok::<(), formwork::config::ConfigError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Section {
    /// The provider's name in the configuration.
    pub name: String,
    /// The settings that do not depend on the kind.
    pub common: Common,
    pub(super) document: Document,
    pub(super) folder: PathBuf,
    pub(super) span: Range<usize>,
    pub(super) registry: Arc<Registry>,
    pub(super) dialects: Dialects,
    pub(super) defaults: Defaults,
    pub(super) health: Thresholds,
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "transports use it"))]
    pub(crate) redaction: Redaction,
}

impl Section {
    /// Deserializes the settings of the kind.
    ///
    /// # Errors
    /// [`ConfigError`] with line and column, for an unknown key, a wrong type or a missing key.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ConfigError> {
        let sections = self.document.providers()?;
        let section = sections.into_iter().find(|(name, ..)| *name == self.name);
        let own = section.map(|(_, _, table)| Common::part(table).1).unwrap_or_default();
        self.document.read(own, self.span.clone(), &Common::names())
    }

    /// Returns the section with another model (default: the section's own).
    #[must_use]
    pub fn with_model(self, model: &str) -> Self {
        self.with_model_from("--model", model)
    }

    /// Returns the section with another model (default: the section's own); `source` names its origin in errors, for
    /// example an environment variable.
    #[must_use]
    pub fn with_model_from(mut self, source: &str, model: &str) -> Self {
        let path = ["providers", &self.name, "model"];
        self.document.edits.push(Edit::text(source, &path, model, false));
        self
    }

    /// Returns the section with a default for a string that it does not set.
    #[must_use]
    pub fn with_default(self, name: &str, value: &str) -> Self {
        self.with_default_from("a default", name, value)
    }

    /// Returns the section with a default for a string that it does not set; `source` names its origin in errors.
    #[must_use]
    pub fn with_default_from(mut self, source: &str, name: &str, value: &str) -> Self {
        let path = ["providers", &self.name, name];
        self.document.edits.push(Edit::text(source, &path, value, true));
        self
    }

    /// Returns the section with the value of an environment variable as the default for a string that it does not set. A blank
    /// value counts as none.
    #[must_use]
    pub fn with_variable(self, name: &str, variable_name: &str) -> Self {
        match variable(variable_name) {
            Some(value) => {
                self.with_default_from(&format!("the environment variable {variable_name}"), name, &value)
            }
            None => self,
        }
    }

    /// Returns the section with these settings of the model (default: its own); absent ones keep their values.
    #[must_use]
    pub fn with_settings(mut self, settings: ModelSettings) -> Self {
        self.common.settings = settings.or(self.common.settings);
        self
    }

    /// Returns the settings of the model: those of the section, else those of `[defaults]`.
    pub fn settings(&self) -> ModelSettings {
        self.common.settings.clone().or(self.defaults.settings.clone())
    }

    /// Returns whether the configuration may run programs; see [`Config::is_trusted`](crate::config::Config::is_trusted).
    pub const fn is_trusted(&self) -> bool {
        self.document.is_trusted
    }

    /// Returns the section as part of a file that was found, and neither named nor trusted.
    #[must_use]
    pub fn as_found(mut self) -> Self {
        self.document.is_trusted = false;
        self
    }

    /// Returns whether the text of the file, not an environment variable or a default, chose an address: it has this setting, or a
    /// value with this address.
    #[cfg(feature = "http")]
    pub(crate) fn chooses_address(&self, setting: &str, address: &str) -> bool {
        let Ok(sections) = self.document.providers() else { return true };
        let own = sections.into_iter().find(|(name, ..)| *name == self.name);
        let settings = own.map(|(.., table)| table).unwrap_or_default();
        let in_file = |value: &Spanned<DeValue<'_>>| self.document.edit_at(&value.span()).is_none();
        settings.iter().filter(|(_, value)| in_file(value)).any(|(name, value)| {
            name.get_ref() == setting || value.get_ref().as_str().is_some_and(|value| value.contains(address))
        })
    }

    /// Returns the registry of models: the rows of the file in `registry`, then those of this build.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Returns the dialects that this section may name: those of the [`Providers`](crate::providers::Providers) that
    /// create its provider.
    pub const fn dialects(&self) -> &Dialects {
        &self.dialects
    }

    /// Returns the dialect with this name.
    ///
    /// # Errors
    /// [`ConfigError`] with the location of this section and the most similar name if no dialect has this name.
    pub fn dialect(&self, name: &str) -> Result<Arc<dyn Dialect>, ConfigError> {
        self.dialects.get(name).map_err(|message| self.error(message))
    }

    /// Returns the retry settings: those of this section, else those of `[defaults]`.
    pub(crate) fn retries(&self) -> Retries {
        let Common { retries, retry_delays, .. } = &self.common;
        retry_settings(*retries, retry_delays.as_ref()).or(self.defaults.retries())
    }

    /// Returns the thresholds of evidence about targets.
    pub(crate) const fn health(&self) -> Thresholds {
        self.health
    }

    /// Returns the name of the retry policy, if the configuration names one.
    pub(crate) fn retry_policy(&self) -> Option<&str> {
        self.defaults.retry_policy.as_deref()
    }

    /// Returns an error with the location of the name of the retry policy.
    pub(crate) fn retry_policy_error(&self, message: &str) -> ConfigError {
        self.document.error(self.document.setting("defaults", "retry_policy"), message)
    }

    pub(crate) fn with_dialects(self, dialects: Dialects) -> Self {
        Self { dialects, ..self }
    }

    /// Returns an error with the location of this section.
    pub fn error(&self, message: impl AsRef<str>) -> ConfigError {
        let message = format!("provider `{}`: {}", self.name, message.as_ref());
        let span = Some(self.span.clone()).filter(|span| !span.is_empty());
        self.document.error(span, &message)
    }

    /// Returns a path of the configuration for reading. A relative path starts at the folder of the configuration. For writing,
    /// use [`below`](Self::below).
    pub fn path(&self, path: &Path) -> PathBuf {
        self.folder.join(path)
    }

    /// Returns a path of the configuration for writing, which must be inside the folder of the configuration.
    ///
    /// # Errors
    /// [`ConfigError`] for an absolute path, a path with `..`, a path whose folder is missing or is a symbolic link to
    /// outside the configuration's folder, and a path that is a symbolic link itself.
    pub fn below(&self, path: &Path) -> Result<PathBuf, ConfigError> {
        below(&self.folder, path).map_err(|reason| self.error(format!("{}: {reason}", path.display())))
    }
}

/// Returns the value of an environment variable that is set and not blank.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

fn below(folder: &Path, path: &Path) -> Result<PathBuf, String> {
    let outside = || "the path must be below the folder of the configuration".to_owned();
    let is_plain = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    let Some(name) = path.file_name().filter(|_| path.components().all(is_plain)) else {
        return Err(outside());
    };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let real = |path: &Path| path.canonicalize().map_err(|error| format!("{}: {error}", path.display()));
    let parent = real(&folder.join(path.parent().unwrap_or(Path::new(""))))?;
    if !parent.starts_with(real(folder)?) {
        return Err(outside());
    }
    let file = parent.join(name);
    match file.symlink_metadata() {
        Ok(metadata) if metadata.is_symlink() => Err("it is a symbolic link".to_owned()),
        _ => Ok(file),
    }
}
