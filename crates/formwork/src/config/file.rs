use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use formwork_dialect::registry::Registry;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toml::de::DeTable;

use super::document::{Document, nearest};
use super::find;
use super::overlay::{self, Edit};
use super::{Common, ConfigError};

/// A configuration: providers by name, in which order they are asked, and how.
///
/// ```
/// use formwork::config::Config;
///
/// let config = Config::from_toml(
///     r#"
///         targets = ["primary", "backup"]
///
///         [providers.primary]
///         kind = "ollama"
///         model = "qwen3:8b"
///
///         [providers.backup]
///         kind = "openai"
///         model = "gpt-4o-mini"
///         api_key_env = "OPENAI_API_KEY"
///     "#,
/// )?;
/// assert_eq!(config.targets(), ["primary", "backup"]);
/// # Ok::<(), formwork::config::ConfigError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Config {
    document: Document,
    targets: Vec<String>,
    defaults: Defaults,
    sections: Vec<Section>,
}

/// How extractions are made unless they say otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    /// How often a model may try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// The temperature of the first attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The most tokens of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Seconds for each input, all attempts together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<f64>,
}

/// One provider of a configuration.
#[derive(Debug, Clone)]
pub struct Section {
    /// Its name in the configuration.
    pub name: String,
    /// What every kind may be told.
    pub common: Common,
    document: Document,
    folder: PathBuf,
    span: Range<usize>,
    registry: Arc<Registry>,
}

/// What stands beside the providers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rest {
    #[serde(default)]
    targets: Option<Vec<String>>,
    #[serde(default)]
    defaults: Defaults,
    #[serde(default)]
    registry: Option<PathBuf>,
}

impl Config {
    /// Finds the file and reads it: `explicit`, the file that `FORMWORK_CONFIG` names, `formwork.toml` in this folder or
    /// one above it, `formwork/formwork.toml` in the user's folder for configuration. `None` if there is none.
    ///
    /// # Errors
    /// [`ConfigError`], if a file that was named cannot be read, or one that was found is none.
    pub fn find(explicit: Option<&Path>) -> Result<Option<Self>, ConfigError> {
        find::file(explicit).map(|path| Self::load(&path)).transpose()
    }

    /// Reads a file, and what the environment has in its place: `FORMWORK__PROVIDERS__PRIMARY__MODEL=qwen3:8b` is
    /// `model = "qwen3:8b"` in `[providers.primary]`.
    ///
    /// # Errors
    /// [`ConfigError`], if it cannot be read or is no configuration.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let file = path.display().to_string();
        let text =
            std::fs::read_to_string(path).map_err(|error| ConfigError::new(&file, error.to_string()))?;
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        Self::new(Document::new(&file, &text, overlay::environment()), &folder)
    }

    /// Reads a text; paths are below the current folder, and the environment counts for nothing.
    ///
    /// # Errors
    /// [`ConfigError`], if it is no configuration.
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        Self::new(Document::new("the configuration", text, Vec::new()), Path::new(""))
    }

    pub(super) fn new(document: Document, folder: &Path) -> Result<Self, ConfigError> {
        let mut table = document.table()?;
        table.remove("providers");
        let Rest { targets, defaults, registry } =
            document.read(table, 0..document.text.len(), &["providers"])?;
        let registry = Arc::new(known_models(&document, folder, registry.as_deref())?);
        let sections = document
            .providers()?
            .into_iter()
            .map(|(name, span, table)| Section::new(&document, folder, &registry, name, span, table))
            .collect::<Result<Vec<_>, _>>()?;
        if sections.is_empty() {
            return Err(document.error(None, "there is no provider: add one, such as [providers.primary]"));
        }
        let names = || sections.iter().map(|section| section.name.as_str());
        let targets = targets.unwrap_or_else(|| names().map(str::to_owned).collect());
        if let Some(unknown) = targets.iter().find(|target| !names().any(|name| name == *target)) {
            return Err(document.error(document.quoted(unknown), &unknown_provider(unknown, names())));
        }
        if targets.is_empty() {
            return Err(document.error(None, "`targets` is empty: name the providers to ask, in order"));
        }
        Ok(Self { targets, defaults, sections, document: document.clone() })
    }

    /// The names of the providers that are asked, in order.
    pub fn targets(&self) -> &[String] {
        &self.targets
    }

    /// How extractions are made unless they say otherwise.
    pub const fn defaults(&self) -> Defaults {
        self.defaults
    }

    /// Every provider, those that are not asked included.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// A provider by its name.
    ///
    /// # Errors
    /// [`ConfigError`] with the nearest right name.
    pub fn section(&self, name: &str) -> Result<&Section, ConfigError> {
        let names = self.sections.iter().map(|section| section.name.as_str());
        let found = self.sections.iter().find(|section| section.name == name);
        found.ok_or_else(|| self.document.error(None, &unknown_provider(name, names)))
    }

    /// The file, as it is shown to people.
    pub fn file(&self) -> &str {
        &self.document.file
    }
}

impl Section {
    fn new(
        document: &Document,
        folder: &Path,
        registry: &Arc<Registry>,
        name: String,
        span: Range<usize>,
        table: DeTable<'_>,
    ) -> Result<Self, ConfigError> {
        let common: Common = document.read(parted(table).0, span.clone(), &[])?;
        let section = Self {
            name,
            common,
            document: document.clone(),
            folder: folder.to_owned(),
            span,
            registry: Arc::clone(registry),
        };
        let seconds = section.common.seconds();
        match seconds.into_iter().find(|(_, seconds)| !(0.001..=86_400.0).contains(seconds)) {
            Some((name, _)) => {
                Err(section.error(format!("`{name}` is a number of seconds, from 0.001 to 86400")))
            }
            None => Ok(section),
        }
    }

    /// What this kind of provider is told.
    ///
    /// # Errors
    /// [`ConfigError`] with line and column: an unknown name, a wrong type, something that is missing.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ConfigError> {
        let sections = self.document.providers()?;
        let section = sections.into_iter().find(|(name, ..)| *name == self.name);
        let own = section.map(|(_, _, table)| parted(table).1).unwrap_or_default();
        self.document.read(own, self.span.clone(), Common::NAMES)
    }

    /// The same section with this model.
    #[must_use]
    pub fn with_model(mut self, model: &str) -> Self {
        let path = ["providers", &self.name, "model"];
        self.document.edits.push(Edit::text("--model", &path, model, false));
        self
    }

    /// The same section with a text that it does not have yet.
    #[must_use]
    pub fn with_default(mut self, name: &str, value: &str) -> Self {
        let path = ["providers", &self.name, name];
        self.document.edits.push(Edit::text("a default", &path, value, true));
        self
    }

    /// What is known of models by their names: the rows of the file that `registry` names, then those of this build.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// An error at the place of this section.
    pub fn error(&self, message: impl AsRef<str>) -> ConfigError {
        let message = format!("provider `{}`: {}", self.name, message.as_ref());
        let span = Some(self.span.clone()).filter(|span| !span.is_empty());
        self.document.error(span, &message)
    }

    /// A path of the configuration, which is below its folder.
    pub fn path(&self, path: &Path) -> PathBuf {
        self.folder.join(path)
    }
}

fn known_models(document: &Document, folder: &Path, file: Option<&Path>) -> Result<Registry, ConfigError> {
    let Some(file) = file else { return Ok(Registry::embedded().clone()) };
    let path = folder.join(file);
    let refused = |reason: String| {
        let span = document.quoted(&file.to_string_lossy());
        document.error(span, &format!("the registry {}: {reason}", path.display()))
    };
    let text = std::fs::read_to_string(&path).map_err(|error| refused(error.to_string()))?;
    let own = Registry::from_toml(&text).map_err(|error| refused(error.to_string()))?;
    Ok(Registry::embedded().overlaid_with(own))
}

/// What every kind may be told, and what is the kind's own.
fn parted(table: DeTable<'_>) -> (DeTable<'_>, DeTable<'_>) {
    table.into_iter().partition(|(key, _)| Common::NAMES.contains(&key.get_ref().as_ref()))
}

fn unknown_provider<'n>(unknown: &str, names: impl Iterator<Item = &'n str> + Clone) -> String {
    match nearest(unknown, names.clone()) {
        Some(meant) => format!("there is no provider `{unknown}`: did you mean `{meant}`?"),
        None => {
            let names: Vec<_> = names.collect();
            format!("there is no provider `{unknown}`; there are: {}", names.join(", "))
        }
    }
}
