//! Where the file is.

use std::path::{Path, PathBuf};

/// The name of the file that is looked for.
const FILE: &str = "formwork.toml";

/// The environment variable that names the file.
const VARIABLE: &str = "FORMWORK_CONFIG";

/// The file that was named, or the one that is found.
pub(super) fn file(explicit: Option<&Path>) -> Option<PathBuf> {
    if let Some(path) = explicit {
        return Some(path.to_owned());
    }
    if let Some(path) = variable(VARIABLE) {
        return Some(path);
    }
    let here = std::env::current_dir().unwrap_or_default();
    let upwards = here.ancestors().map(|folder| folder.join(FILE));
    upwards.chain(user_file()).find(|path| path.is_file())
}

/// The file in the user's folder for configuration (XDG on Unix, `APPDATA` on Windows).
fn user_file() -> Option<PathBuf> {
    let home = || variable("HOME").map(|home| home.join(".config"));
    let folder = if cfg!(windows) { variable("APPDATA") } else { variable("XDG_CONFIG_HOME").or_else(home) };
    Some(folder?.join("formwork").join(FILE))
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
