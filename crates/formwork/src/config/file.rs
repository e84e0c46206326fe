use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use formwork_core::Thresholds;
use formwork_dialect::Dialects;
use formwork_dialect::registry::Registry;
use formwork_schema::nearest;
use serde::Deserialize;

use super::document::Document;
use super::find::{self, Found};
use super::lists::{Aliases, Lists, TargetList, TargetOrder};
use super::overlay::{self, Edit};
use super::{Common, ConfigError, Defaults, Redaction, Section, Serve, Telemetry, TrustedFiles};

/// The default configuration, for users without one.
const IN_PROCESS: &str = "[providers.local]\nkind = \"local\"\n";

/// A configuration: the providers by name, the order of calls, and the default settings.
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
///         model = "gpt-5.4-mini"
///         api_key_env = "OPENAI_API_KEY"
///     "#,
/// )?;
/// assert_eq!(config.targets(), ["primary", "backup"]);
/// # Ok::<(), formwork::config::ConfigError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Config {
    document: Document,
    targets: TargetList,
    rest: Rest,
    sections: Vec<Section>,
    rounded: Vec<String>,
}

/// The provider, list or model that a name in a configuration refers to; see [`Config::named`].
///
/// ```
/// use formwork::config::{Config, ConfigError, Named};
///
/// fn describe(config: &Config, name: &str) -> Result<String, ConfigError> {
///     Ok(match config.named(name)? {
///         Named::Provider(section) => format!("provider of the kind {}", section.common.kind),
///         Named::List(list) => format!("list of {} providers", list.targets.len()),
///         Named::Model(model) => format!("model {model}"),
///     })
/// }
///
/// let config = Config::from_toml("[providers.a]\nkind = \"ollama\"\nmodel = \"m\"")?;
/// assert_eq!(describe(&config, "a")?, "provider of the kind ollama");
/// # Ok::<(), ConfigError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub enum Named<'c> {
    /// A provider.
    Provider(&'c Section),
    /// A list of providers.
    List(&'c TargetList),
    /// An alias for a kind of provider with a model, for example `openai/gpt-5.4-mini`.
    Model(&'c str),
}

/// The keys besides `providers`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Rest {
    targets: Option<Vec<String>>,
    order: Option<TargetOrder>,
    weights: Option<Vec<u32>>,
    lists: Lists,
    aliases: Aliases,
    defaults: Defaults,
    registry: Option<PathBuf>,
    contracts: Option<PathBuf>,
    serve: Serve,
    telemetry: Telemetry,
    health: Thresholds,
    redaction: Redaction,
}

impl Config {
    /// Finds and parses the configuration. Returns `None` if there is none.
    ///
    /// The sources in the order of precedence:
    /// 1. `explicit`, otherwise the file in the environment variable `FORMWORK_CONFIG`;
    /// 2. `formwork.toml` in the current folder or above it, up to the folder with `.git`; outside a repository, in the
    ///    current folder only;
    /// 3. `formwork/formwork.toml` in the user's configuration folder: `XDG_CONFIG_HOME` or `~/.config`,
    ///    `~/Library/Application Support` on macOS, `APPDATA` on Windows;
    /// 4. the environment alone, if variables such as `FORMWORK__PROVIDERS__PRIMARY__KIND` are set. If they set only a
    ///    provider called `local`, that provider is the model in this process.
    ///
    /// # Errors
    /// [`ConfigError`] if the file cannot be read or is invalid. For a file of the sources 2 and 3, on Unix, also if the file
    /// or its folder belongs to another user (except root) or is writable by everyone.
    pub fn find(explicit: Option<&Path>) -> Result<Option<Self>, ConfigError> {
        Self::find_with(explicit, &Dialects::builtin())
    }

    /// Finds and parses the configuration like [`find`](Self::find), with custom dialects. Pass the dialects of your
    /// [`Providers`](crate::providers::Providers::dialects).
    ///
    /// # Errors
    /// The errors of [`find`](Self::find).
    pub fn find_with(explicit: Option<&Path>, dialects: &Dialects) -> Result<Option<Self>, ConfigError> {
        if let Some(Found { path, was_named }) = find::file(explicit)? {
            return Self::load_with(&path, was_named, dialects).map(Some);
        }
        let edits = overlay::environment();
        if edits.is_empty() {
            return Ok(None);
        }
        let is_local = |edit: &Edit| edit.provider().is_none_or(|name| name == "local");
        let text = if edits.iter().all(is_local) { IN_PROCESS } else { "" };
        Self::new(Document::new("the environment", text, edits), Path::new(""), dialects).map(Some)
    }

    /// Returns the default configuration: the model in this process.
    ///
    /// # Errors
    /// None in practice: the text is part of this crate.
    pub fn in_process() -> Result<Self, ConfigError> {
        Self::from_toml(IN_PROCESS)
    }

    /// Reads a file. Environment variables override its values: `FORMWORK__PROVIDERS__PRIMARY__MODEL=qwen3:8b` sets
    /// `model = "qwen3:8b"` in `[providers.primary]`.
    ///
    /// # Errors
    /// [`ConfigError`] if the file cannot be read or is invalid.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        Self::load_with(path, true, &Dialects::builtin())
    }

    fn load_with(path: &Path, was_named: bool, dialects: &Dialects) -> Result<Self, ConfigError> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| {
            let is_missing = error.kind() == std::io::ErrorKind::NotFound;
            let fix = if is_missing { ": `formwork init --file FILE MODEL` writes one" } else { "" };
            ConfigError::new(&file, format!("{error}{fix}"))
        })?;
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        let trusted = || TrustedFiles::of_user().is_some_and(|files| files.contains(path, &text));
        let is_trusted = was_named || trusted();
        let document = Document { is_trusted, ..Document::new(&file, &text, overlay::environment()) };
        Self::new(document, &folder, dialects)
    }

    /// Parses a configuration from text, without the environment. Relative paths start at the current folder.
    ///
    /// # Errors
    /// [`ConfigError`] if the text is not a valid configuration.
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        let document = Document::new("the configuration", text, Vec::new());
        Self::new(document, Path::new(""), &Dialects::builtin())
    }

    pub(super) fn new(document: Document, folder: &Path, dialects: &Dialects) -> Result<Self, ConfigError> {
        document.check_expanded()?;
        document.check_tables()?;
        document.check_extra()?;
        let rounded = document.rounded()?;
        let mut table = document.table()?;
        table.remove("providers");
        let mut rest: Rest = document.read(table, 0..document.text.len(), &["providers"])?;
        let registry = Arc::new(known_models(&document, folder, rest.registry.as_deref(), dialects)?);
        let sections = document
            .providers()?
            .into_iter()
            .map(|(name, span, table)| {
                Ok(Section {
                    name,
                    common: document.read(Common::part(table).0, span.clone(), &[])?,
                    document: document.clone(),
                    folder: folder.to_owned(),
                    span,
                    registry: Arc::clone(&registry),
                    dialects: dialects.clone(),
                    defaults: rest.defaults.clone(),
                    health: rest.health,
                    redaction: rest.redaction.clone(),
                })
            })
            .collect::<Result<Vec<_>, _>>()?;
        if sections.is_empty() {
            return Err(
                document.error(None, "no provider is configured: add one, such as [providers.primary]")
            );
        }
        let all = || sections.iter().map(|section| section.name.clone()).collect();
        let targets = rest.targets.take().unwrap_or_else(all);
        let targets = TargetList { targets, order: rest.order, weights: rest.weights.take() };
        let Serve { tls_cert, tls_key, .. } = &mut rest.serve;
        let files = [&mut rest.contracts, &mut rest.defaults.calibration, tls_cert, tls_key];
        for file in files.into_iter().flatten() {
            *file = folder.join(&*file);
        }
        let config = Self { document, targets, rest, sections, rounded };
        config.check_lists()?;
        config.check_aliases()?;
        Ok(config)
    }

    /// Returns a sentence for each fraction that was rounded to a double, with its location (default: none).
    ///
    /// ```
    /// use formwork::config::Config;
    ///
    /// let text = "[defaults]\ntemperature = 0.12345678901234567891\n[providers.a]\nkind = \"ollama\"\nmodel = \"m\"";
    /// let rounded = Config::from_toml(text)?.rounded().join("\n");
    /// assert!(rounded.starts_with("the configuration:2:15: the number 0.12345678901234567891 was rounded to"));
    /// # Ok::<(), formwork::config::ConfigError>(())
    /// ```
    pub fn rounded(&self) -> &[String] {
        &self.rounded
    }

    fn check_lists(&self) -> Result<(), ConfigError> {
        let names = || self.sections.iter().map(|section| section.name.as_str());
        let named = self.rest.lists.iter().map(|(name, list)| (Some(name), list));
        for (name, list) in std::iter::once((None, &self.targets)).chain(named) {
            if let Some(unknown) = list.targets.iter().find(|target| !names().any(|name| name == *target)) {
                let place = self.document.quoted(unknown);
                return Err(self.document.error(place, &unknown_provider(unknown, names())));
            }
            if let Some(problem) = list.problem() {
                let of = name.map(|name| format!("the list `{name}`: ")).unwrap_or_default();
                return Err(self.document.error(None, &format!("{of}{problem}")));
            }
            if let Some(name) = name.filter(|name| names().any(|other| other == *name)) {
                let message = format!("`{name}` names a provider and a list: rename one of them");
                return Err(self.document.error(None, &message));
            }
        }
        Ok(())
    }

    fn check_aliases(&self) -> Result<(), ConfigError> {
        let names = || self.sections.iter().map(|section| &section.name).chain(self.rest.lists.keys());
        for (alias, aliased) in &self.rest.aliases {
            if names().any(|name| name == alias) {
                let message = format!("`{alias}` names an alias and a provider or list: rename one of them");
                return Err(self.document.error(None, &message));
            }
            if !aliased.contains('/') && !names().any(|name| name == aliased) {
                let names = names().map(String::as_str);
                let nearest = nearest(aliased, names).map(|name| format!(": did you mean `{name}`?"));
                let message = format!(
                    "the alias `{alias}` names `{aliased}`, which is no provider and no list of this file, and no model \
                     with its kind such as `openai/gpt-5.4-mini`{}",
                    nearest.unwrap_or_default()
                );
                return Err(self.document.error(self.document.quoted(aliased), &message));
            }
        }
        Ok(())
    }

    /// Returns the default list of targets: the keys `targets`, `order` and `weights` (default: all providers in the order of
    /// the file).
    pub const fn target_list(&self) -> &TargetList {
        &self.targets
    }

    /// Returns the lists of targets by name (default: none).
    pub const fn lists(&self) -> &BTreeMap<String, TargetList> {
        &self.rest.lists
    }

    /// Returns the aliases (default: none). The value of an alias is the name of a provider or list, or a kind with a model.
    pub const fn aliases(&self) -> &BTreeMap<String, String> {
        &self.rest.aliases
    }

    /// Returns the provider or list with this name, or the provider, list or model behind an alias with this name.
    ///
    /// ```
    /// use formwork::config::{Config, Named};
    ///
    /// let config = Config::from_toml(
    ///     r#"
    ///         [providers.small]
    ///         kind = "ollama"
    ///         model = "qwen3:8b"
    ///
    ///         [providers.large]
    ///         kind = "ollama"
    ///         model = "qwen3:32b"
    ///
    ///         [lists.both]
    ///         targets = ["small", "large"]
    ///         weights = [3, 1]
    ///
    ///         [aliases]
    ///         fast = "small"
    ///     "#,
    /// )?;
    /// assert!(matches!(config.named("fast")?, Named::Provider(section) if section.name == "small"));
    /// assert!(matches!(config.named("both")?, Named::List(list) if list.targets == ["small", "large"]));
    /// # Ok::<(), formwork::config::ConfigError>(())
    /// ```
    ///
    /// # Errors
    /// [`ConfigError`] if the name is unknown. The message has the most similar name, or all names.
    pub fn named(&self, name: &str) -> Result<Named<'_>, ConfigError> {
        let aliased = self.rest.aliases.get(name).map_or(name, String::as_str);
        if let Some(list) = self.rest.lists.get(aliased) {
            return Ok(Named::List(list));
        }
        if let Some(section) = self.sections.iter().find(|section| section.name == aliased) {
            return Ok(Named::Provider(section));
        }
        if let Some(model) = self.rest.aliases.get(name) {
            return Ok(Named::Model(model));
        }
        let sections = self.sections.iter().map(|section| &section.name);
        let names =
            sections.chain(self.rest.lists.keys()).chain(self.rest.aliases.keys()).map(String::as_str);
        Err(self.document.error(None, &unknown_provider(name, names)))
    }

    /// Returns the names of the providers in the default list, in order.
    pub fn targets(&self) -> &[String] {
        &self.targets.targets
    }

    /// Returns the default settings of extractions.
    pub fn defaults(&self) -> Defaults {
        self.rest.defaults.clone()
    }

    /// Returns the folder of named contracts, if one is set.
    pub fn contracts(&self) -> Option<&Path> {
        self.rest.contracts.as_deref()
    }

    /// Returns the settings of `formwork serve`.
    pub const fn serve(&self) -> &Serve {
        &self.rest.serve
    }

    /// Returns the settings of the collector of `formwork serve`.
    pub const fn telemetry(&self) -> &Telemetry {
        &self.rest.telemetry
    }

    /// Returns the thresholds of `[health]`, by which the evidence about targets counts.
    pub const fn health(&self) -> &Thresholds {
        &self.rest.health
    }

    /// Returns the texts that logs, ledgers and cassettes must not contain.
    pub const fn redaction(&self) -> &Redaction {
        &self.rest.redaction
    }

    /// Returns an error located at a setting of `[telemetry]`, or at the section if it does not have this setting.
    pub fn telemetry_error(&self, setting: &str, message: impl fmt::Display) -> ConfigError {
        let span = self.document.setting("telemetry", setting);
        self.document.error(span, &format!("[telemetry]: {message}"))
    }

    /// Returns whether the text of the file, not an environment variable, has a setting of a section.
    #[cfg(feature = "http")]
    pub(crate) fn is_set_by_file(&self, section: &str, setting: &str) -> bool {
        self.document.setting(section, setting).is_some_and(|span| self.document.edit_at(&span).is_none())
    }

    /// Returns all providers, including those outside the default list.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Returns the provider with this name.
    ///
    /// # Errors
    /// [`ConfigError`] with the most similar name if no provider has this name.
    pub fn section(&self, name: &str) -> Result<&Section, ConfigError> {
        let names = self.sections.iter().map(|section| section.name.as_str());
        let found = self.sections.iter().find(|section| section.name == name);
        found.ok_or_else(|| self.document.error(None, &unknown_provider(name, names)))
    }

    pub(super) const fn document(&self) -> &Document {
        &self.document
    }

    /// Returns whether the configuration may run programs. A file may if it was named or if the user trusts it
    /// ([`TrustedFiles`]); a text and the environment always may.
    pub const fn is_trusted(&self) -> bool {
        self.document.is_trusted
    }

    /// Returns the source of the configuration, for messages: the path of the file, `the environment` or `the
    /// configuration`.
    pub fn file(&self) -> &str {
        &self.document.file
    }

    /// Returns the sources of replaced values, for messages: `the environment variable FORMWORK__…`.
    pub fn overrides(&self) -> impl Iterator<Item = &str> {
        self.document.edits.iter().map(|edit| edit.source.as_str())
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

fn unknown_provider<'n>(unknown: &str, names: impl Iterator<Item = &'n str> + Clone) -> String {
    match nearest(unknown, names.clone()) {
        Some(aliased) => format!("there is no provider `{unknown}`: did you mean `{aliased}`?"),
        None => {
            let names: Vec<_> = names.collect();
            format!("there is no provider `{unknown}`; there are: {}", names.join(", "))
        }
    }
}
