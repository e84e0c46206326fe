use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use formwork_dialect::registry::Registry;
use formwork_dialect::{Dialect, Dialects};
use formwork_schema::nearest;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::de::DeTable;

use super::document::Document;
use super::find;
use super::overlay::{self, Edit};
use super::{Alias, Common, ConfigError, Defaults, Serve};

/// The configuration that holds where there is none.
const IN_PROCESS: &str = "[providers.local]\nkind = \"local\"\n";

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
    aliases: BTreeMap<String, Alias>,
    contracts: Option<PathBuf>,
    serve: Serve,
}

/// One provider of a configuration.
#[derive(Debug, Clone)]
pub struct Section {
    /// Its name in the configuration.
    pub name: String,
    /// The settings that every kind may have.
    pub common: Common,
    document: Document,
    folder: PathBuf,
    span: Range<usize>,
    registry: Arc<Registry>,
    dialects: Dialects,
}

/// The members beside the providers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rest {
    #[serde(default)]
    targets: Option<Vec<String>>,
    #[serde(default)]
    defaults: Defaults,
    #[serde(default)]
    registry: Option<PathBuf>,
    #[serde(default)]
    aliases: BTreeMap<String, Alias>,
    #[serde(default)]
    contracts: Option<PathBuf>,
    #[serde(default)]
    serve: Serve,
}

impl Config {
    /// Finds the configuration and reads it. The first of these counts:
    ///
    /// 1. `explicit`, else the file that the environment variable `FORMWORK_CONFIG` names;
    /// 2. `formwork.toml` in the current folder or above it, up to the folder with `.git`; outside of a repository in the
    ///    current folder alone;
    /// 3. `formwork/formwork.toml` in the user's folder for configuration: `XDG_CONFIG_HOME` or `~/.config`,
    ///    `~/Library/Application Support` on macOS, `APPDATA` on Windows;
    /// 4. the environment alone, if variables such as `FORMWORK__PROVIDERS__PRIMARY__KIND` are set. If they say no more of
    ///    providers than of one called `local`, that is the model in this process.
    ///
    /// Returns `None` if there is none of them.
    ///
    /// # Errors
    /// [`ConfigError`] if the file cannot be read or is no configuration, and on Unix if a file that was found and not
    /// named, or its folder, belongs to another user than this one and root or can be written by everyone.
    pub fn find(explicit: Option<&Path>) -> Result<Option<Self>, ConfigError> {
        Self::find_with(explicit, &Dialects::builtin())
    }

    /// Does the same as [`find`](Self::find), where the file and its registry may also name dialects of your own. Pass those of
    /// your [`Providers`](crate::providers::Providers::dialects).
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub fn find_with(explicit: Option<&Path>, dialects: &Dialects) -> Result<Option<Self>, ConfigError> {
        if let Some(path) = find::file(explicit)? {
            return Self::load_with(&path, dialects).map(Some);
        }
        let edits = overlay::environment();
        if edits.is_empty() {
            return Ok(None);
        }
        let is_local = |edit: &Edit| edit.provider().is_none_or(|name| name == "local");
        let text = if edits.iter().all(is_local) { IN_PROCESS } else { "" };
        Self::new(Document::new("the environment", text, edits), Path::new(""), dialects).map(Some)
    }

    /// Returns the configuration that holds where there is none: the model in this process.
    ///
    /// # Errors
    /// None; the text is a part of this crate.
    pub fn in_process() -> Result<Self, ConfigError> {
        Self::from_toml(IN_PROCESS)
    }

    /// Reads a file, and what the environment has in its place: `FORMWORK__PROVIDERS__PRIMARY__MODEL=qwen3:8b` is
    /// `model = "qwen3:8b"` in `[providers.primary]`.
    ///
    /// # Errors
    /// [`ConfigError`], if it cannot be read or is no configuration.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        Self::load_with(path, &Dialects::builtin())
    }

    fn load_with(path: &Path, dialects: &Dialects) -> Result<Self, ConfigError> {
        let file = path.display().to_string();
        let text =
            std::fs::read_to_string(path).map_err(|error| ConfigError::new(&file, error.to_string()))?;
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        Self::new(Document::new(&file, &text, overlay::environment()), &folder, dialects)
    }

    /// Reads a text; paths are below the current folder, and the environment counts for nothing.
    ///
    /// # Errors
    /// [`ConfigError`], if it is no configuration.
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        let document = Document::new("the configuration", text, Vec::new());
        Self::new(document, Path::new(""), &Dialects::builtin())
    }

    pub(super) fn new(document: Document, folder: &Path, dialects: &Dialects) -> Result<Self, ConfigError> {
        let mut table = document.table()?;
        table.remove("providers");
        let Rest { targets, defaults, registry, aliases, contracts, serve } =
            document.read(table, 0..document.text.len(), &["providers"])?;
        let registry = Arc::new(known_models(&document, folder, registry.as_deref(), dialects)?);
        let sections = document
            .providers()?
            .into_iter()
            .map(|(name, span, table)| {
                let common: Common = document.read(parted(table).0, span.clone(), &[])?;
                let (document, folder) = (document.clone(), folder.to_owned());
                let (registry, dialects) = (Arc::clone(&registry), dialects.clone());
                Ok(Section { name, common, document, folder, span, registry, dialects })
            })
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
        for (alias, Alias(meant)) in &aliases {
            if let Some(unknown) = meant.iter().find(|target| !names().any(|name| name == *target)) {
                let reason = format!("the alias `{alias}`: {}", unknown_provider(unknown, names()));
                return Err(document.error(document.quoted(unknown), &reason));
            }
            if meant.is_empty() || names().any(|name| name == alias) {
                let reason = if meant.is_empty() { "names no provider" } else { "is the name of a provider" };
                return Err(document.error(None, &format!("the alias `{alias}` {reason}")));
            }
        }
        let contracts = contracts.map(|contracts| folder.join(contracts));
        let document = document.clone();
        Ok(Self { targets, defaults, sections, aliases, contracts, serve, document })
    }

    /// The names of the providers that are asked, in order.
    pub fn targets(&self) -> &[String] {
        &self.targets
    }

    /// How extractions are made unless they say otherwise.
    pub const fn defaults(&self) -> Defaults {
        self.defaults
    }

    /// Returns the further names that clients of `formwork serve` may ask for, each with its providers in order.
    pub fn aliases(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.aliases.iter().map(|(name, alias)| (name.as_str(), alias.0.as_slice()))
    }

    /// Returns the folder of named contracts, if one is set.
    pub fn contracts(&self) -> Option<&Path> {
        self.contracts.as_deref()
    }

    /// Returns how `formwork serve` answers.
    pub const fn serve(&self) -> &Serve {
        &self.serve
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

    /// Returns what was read, for messages: the path of the file, `the environment` or `the configuration`.
    pub fn file(&self) -> &str {
        &self.document.file
    }

    /// Returns what was set in place of the file, for messages: `the environment variable FORMWORK__…`.
    pub fn overrides(&self) -> impl Iterator<Item = &str> {
        self.document.edits.iter().map(|edit| edit.source.as_str())
    }
}

impl Section {
    /// Returns the settings of this kind of provider.
    ///
    /// # Errors
    /// [`ConfigError`] with line and column: an unknown name, a wrong type, something that is missing.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ConfigError> {
        let sections = self.document.providers()?;
        let section = sections.into_iter().find(|(name, ..)| *name == self.name);
        let own = section.map(|(_, _, table)| parted(table).1).unwrap_or_default();
        self.document.read(own, self.span.clone(), Common::NAMES)
    }

    /// Returns the same section with this model (default: the section's own).
    #[must_use]
    pub fn with_model(self, model: &str) -> Self {
        self.with_model_from("--model", model)
    }

    /// Returns the same section with this model (default: the section's own); `source` names in errors what said so, such
    /// as an environment variable.
    #[must_use]
    pub fn with_model_from(mut self, source: &str, model: &str) -> Self {
        let path = ["providers", &self.name, "model"];
        self.document.edits.push(Edit::text(source, &path, model, false));
        self
    }

    /// Returns the same section with a default for a text that it does not have yet.
    #[must_use]
    pub fn with_default(self, name: &str, value: &str) -> Self {
        self.with_default_from("a default", name, value)
    }

    /// Returns the same section with a default for a text that it does not have yet; `source` names in errors what said so.
    #[must_use]
    pub fn with_default_from(mut self, source: &str, name: &str, value: &str) -> Self {
        let path = ["providers", &self.name, name];
        self.document.edits.push(Edit::text(source, &path, value, true));
        self
    }

    /// Returns the facts about models by their names: the rows of the file that `registry` names, then those of this build.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Returns the dialects that this section may name: those of the [`Providers`](crate::providers::Providers) that make its
    /// provider.
    pub const fn dialects(&self) -> &Dialects {
        &self.dialects
    }

    /// Returns the dialect of this name.
    ///
    /// # Errors
    /// [`ConfigError`] at the place of this section, with the nearest name.
    pub fn dialect(&self, name: &str) -> Result<Arc<dyn Dialect>, ConfigError> {
        self.dialects.get(name).map_err(|message| self.error(message))
    }

    pub(crate) fn with_dialects(self, dialects: Dialects) -> Self {
        Self { dialects, ..self }
    }

    /// Returns an error at the place of this section.
    pub fn error(&self, message: impl AsRef<str>) -> ConfigError {
        let message = format!("provider `{}`: {}", self.name, message.as_ref());
        let span = Some(self.span.clone()).filter(|span| !span.is_empty());
        self.document.error(span, &message)
    }

    /// Returns a path of the configuration: relative ones are below its folder. For files that are read; a file that is
    /// to be written has to be [`below`](Self::below) it.
    pub fn path(&self, path: &Path) -> PathBuf {
        self.folder.join(path)
    }

    /// Returns the path of a file that is to be written, which has to stay below the folder of the configuration.
    ///
    /// # Errors
    /// [`ConfigError`] for an absolute path, one with `..`, one whose folder does not exist or is a symbolic link out of
    /// the configuration's folder, and one that is a symbolic link itself.
    pub fn below(&self, path: &Path) -> Result<PathBuf, ConfigError> {
        below(&self.folder, path).map_err(|reason| self.error(format!("{}: {reason}", path.display())))
    }
}

fn below(folder: &Path, path: &Path) -> Result<PathBuf, String> {
    let outside = || "it has to be below the folder of the configuration".to_owned();
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

fn known_models(
    document: &Document,
    folder: &Path,
    file: Option<&Path>,
    dialects: &Dialects,
) -> Result<Registry, ConfigError> {
    let Some(file) = file else { return Ok(Registry::embedded().clone()) };
    let path = folder.join(file);
    let refused = |reason: String| {
        let span = document.quoted(&file.to_string_lossy());
        document.error(span, &format!("the registry {}: {reason}", path.display()))
    };
    let text = std::fs::read_to_string(&path).map_err(|error| refused(error.to_string()))?;
    let own = Registry::from_toml_with(&text, dialects).map_err(|error| refused(error.to_string()))?;
    Ok(Registry::embedded().overlaid_with(own))
}

/// Returns the settings that every kind may have, and the kind's own.
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
