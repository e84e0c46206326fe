use std::path::{Path, PathBuf};

use formwork::config::{Config, TrustedFiles};
use formwork::providers::{Providers, telemetry_uses};

use crate::exit::{Failed, Status};
use crate::{configuration, output};

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
    let config = configuration::find(Some(&file), providers)?;
    for (section, of) in config.iter().flat_map(|config| uses(config, providers)) {
        output::line(format!("{section}: {of}"))?;
    }
    list.add(&file).map_err(failed)?;
    output::line(format!("{} is trusted with this, until its contents change", file.display()))?;
    Ok(Status::Ok)
}

/// Returns what the file needs trust for, with the section.
fn uses(config: &Config, providers: &Providers) -> Vec<(String, String)> {
    let hosted = config.sections().iter().filter(|section| section.common.kind != "local");
    let of_providers = hosted.flat_map(|section| {
        let made = providers.make(&section.clone().as_found());
        let uses = made.err().map(|error| error.uses().to_vec()).unwrap_or_default();
        uses.into_iter().map(|of| (format!("provider `{}`", section.name), of))
    });
    let of_telemetry = telemetry_uses(config).into_iter().map(|of| ("[telemetry]".to_owned(), of));
    of_providers.chain(of_telemetry).collect()
}

fn found(providers: &Providers) -> Result<PathBuf, Failed> {
    let config = configuration::find(None, providers)?.map(|config| PathBuf::from(config.file()));
    config.filter(|file| file.is_file()).ok_or_else(|| {
        Failed::usage(
            "no configuration file was found: name one, as in formwork config trust team/formwork.toml",
        )
    })
}
