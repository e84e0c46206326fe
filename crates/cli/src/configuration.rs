//! The configuration of a command.

use std::path::Path;

use formwork::config::Config;
use formwork::providers::Providers;

use crate::exit::Failed;
use crate::redaction;
use crate::stderr::say;

/// Finds and reads the configuration; its `[redaction]` holds from here on. Prints a warning for each number that was rounded.
pub(crate) fn find(file: Option<&Path>, providers: &Providers) -> Result<Option<Config>, Failed> {
    let config = Config::find_with(file, providers.dialects()).map_err(Failed::usage)?;
    if let Some(config) = &config {
        let is_first = redaction::keep(config.redaction());
        config.rounded().iter().filter(|_| is_first).for_each(|number| say!("warning: {number}"));
    }
    Ok(config)
}
