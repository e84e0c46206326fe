//! The file with the answers that commands reuse.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use crate::config::Config;

/// The folder beside a configuration, and the name of the file.
const FOLDER: &str = ".formwork";
const NAME: &str = "store.db";

/// Returns the store of a configuration: `FORMWORK_STORE`, else `.formwork/store.db` beside the file, else, for a configuration of the
/// user and without one, `formwork/store.db` in the user's data folder, which is below `XDG_DATA_HOME` or `~/.local/share` on Linux,
/// `~/Library/Application Support` on macOS and `LOCALAPPDATA` on Windows. `None` without such a folder. Creates its folder; git
/// ignores the one beside the configuration.
///
/// # Errors
/// The message of the operating system with the folder, if it cannot be created.
///
/// ```no_run
/// let config = formwork::config::Config::find(None)?;
/// let store = formwork::store::default(config.as_ref());
/// # Ok::<(), formwork::config::ConfigError>(())
/// ```
pub fn default(config: Option<&Config>) -> Result<Option<PathBuf>, String> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(store) = set("FORMWORK_STORE") {
        return Ok(Some(store));
    }
    let absolute = |name: &str| set(name).filter(|folder| folder.is_absolute());
    let home = |below: &str| absolute("HOME").map(|home| home.join(below));
    let beside = config.map(|config| Path::new(config.file()));
    let beside = beside.filter(|file| file.is_file() && !crate::config::is_of_user(file));
    let folder = if let Some(file) = beside {
        Some(file.parent().unwrap_or(Path::new("")).join(FOLDER))
    } else if cfg!(windows) {
        absolute("LOCALAPPDATA").map(|folder| folder.join("formwork"))
    } else if cfg!(target_os = "macos") {
        home("Library/Application Support/formwork")
    } else {
        absolute("XDG_DATA_HOME").or_else(|| home(".local/share")).map(|folder| folder.join("formwork"))
    };
    let Some(folder) = folder else { return Ok(None) };
    made(&folder, beside.is_some()).map_err(|error| {
        format!("{}: {error}: name another file for the answers with --store", folder.display())
    })?;
    Ok(Some(folder.join(NAME)))
}

fn made(folder: &Path, is_ignored: bool) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    if is_ignored { fs::write(folder.join(".gitignore"), "*\n") } else { Ok(()) }
}
