//! The configuration of a command, and its `[redaction]` for all that the command writes beside its answers.

use std::path::Path;
use std::sync::OnceLock;

use formwork::config::{Config, ConfigError, Redaction};
use formwork::providers::Providers;

/// The `[redaction]` of the configuration that this process found first: a process reads one.
static REDACTION: OnceLock<Redaction> = OnceLock::new();

/// Finds and reads the configuration; its `[redaction]` holds from here on.
pub(crate) fn find(file: Option<&Path>, providers: &Providers) -> Result<Option<Config>, ConfigError> {
    let config = Config::find_with(file, providers.dialects())?;
    if let Some(config) = &config {
        REDACTION.get_or_init(|| config.redaction().clone());
    }
    Ok(config)
}

/// Returns a text without the matches of `[redaction]`.
pub(crate) fn redacted(text: &str) -> String {
    REDACTION.get().map_or_else(|| text.to_owned(), |redaction| redaction.text(text).into_owned())
}
