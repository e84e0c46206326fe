use std::path::{Path, PathBuf};

use formwork::config::TrustedFiles;
use formwork::providers::Providers;

use crate::exit::{Failed, Status};
use crate::output;

/// Adds a file to the list of trusted files, or removes it.
pub(super) fn run(file: Option<&Path>, remove: bool, providers: &Providers) -> Result<Status, Failed> {
    let Some(list) = TrustedFiles::of_user() else {
        return Err(Failed::usage("there is no folder for the list of trusted files: set HOME"));
    };
    let file = match file {
        Some(file) => file.to_owned(),
        None => found(providers)?,
    };
    let failed = |error: std::io::Error| Failed::usage(format!("{}: {error}", file.display()));
    if remove {
        let was_trusted = list.remove(&file).map_err(failed)?;
        let done = if was_trusted { "is no longer trusted" } else { "was not trusted" };
        output::line(format!("{} {done}", file.display()))?;
        return Ok(Status::of(was_trusted));
    }
    // Checks the file first, because trusting an invalid file would have no effect.
    super::read(Some(&file), providers)?;
    list.add(&file).map_err(failed)?;
    output::line(format!("{} may run programs, until its contents change", file.display()))?;
    Ok(Status::Ok)
}

fn found(providers: &Providers) -> Result<PathBuf, Failed> {
    let config = super::read(None, providers)?.map(|config| PathBuf::from(config.file()));
    config.filter(|file| file.is_file()).ok_or_else(|| {
        Failed::usage(
            "no configuration file was found: name one, as in formwork config trust team/formwork.toml",
        )
    })
}
