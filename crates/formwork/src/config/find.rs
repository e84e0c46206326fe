//! Finds the configuration file, and decides whether a found file can be trusted.

use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

use super::ConfigError;

/// The name of the configuration file.
const FILE: &str = "formwork.toml";

/// The environment variable with the path of the configuration file.
const VARIABLE: &str = "FORMWORK_CONFIG";

/// A configuration file, and whether the user named it.
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) was_named: bool,
}

/// Returns the named file, else the first file that exists in the searched folders.
///
/// # Errors
/// [`ConfigError`] if the file that was found could have been written by another user. A file that was named is trusted.
pub(super) fn file(explicit: Option<&Path>) -> Result<Option<Found>, ConfigError> {
    let named = |path| Ok(Some(Found { path, was_named: true }));
    if let Some(path) = explicit {
        return named(path.to_owned());
    }
    if let Some(path) = variable(VARIABLE) {
        return match path.metadata() {
            Ok(_) => named(path),
            Err(error) => {
                let message = format!("{}: {error}", path.display());
                Err(ConfigError::new(&format!("the environment variable {VARIABLE}"), message))
            }
        };
    }
    let here = std::env::current_dir().unwrap_or_default();
    let mut places = project(&here).chain(user_folder()).map(|folder| folder.join(FILE));
    let Some(found) = places.find(|path| path.is_file()) else { return Ok(None) };
    match distrust(&found) {
        None => Ok(Some(Found { path: found, was_named: false })),
        Some(reason) => {
            let message = format!(
                "{reason}; the file was not read: change its owner or permissions, or name the file with --config or {VARIABLE}"
            );
            Err(ConfigError::new(&found.display().to_string(), message))
        }
    }
}

/// Returns the folders of the project, from the current one up to the one with `.git`. Outside a repository it is only
/// the current one, because nothing marks the end of the project.
fn project(here: &Path) -> impl Iterator<Item = PathBuf> {
    let root = here.ancestors().position(|folder| folder.join(".git").exists());
    here.ancestors().take(root.unwrap_or(0) + 1).map(ToOwned::to_owned)
}

/// Returns the configuration folder of this program for the current user: below `XDG_CONFIG_HOME` or `~/.config` on Linux,
/// `~/Library/Application Support` on macOS, and `APPDATA` on Windows. `XDG_CONFIG_HOME` applies on macOS too.
pub(super) fn user_folder() -> Option<PathBuf> {
    // The specification of XDG ignores relative paths; they would depend on the current folder.
    let folder = |name| variable(name).filter(|folder| folder.is_absolute());
    let home = |below: &str| folder("HOME").map(|home| home.join(below));
    let found = if cfg!(windows) {
        folder("APPDATA")
    } else if cfg!(target_os = "macos") {
        folder("XDG_CONFIG_HOME").or_else(|| home("Library/Application Support"))
    } else {
        folder("XDG_CONFIG_HOME").or_else(|| home(".config"))
    };
    Some(found?.join("formwork"))
}

/// Returns whether a file is in the user's configuration folder.
pub(crate) fn is_of_user(file: &Path) -> bool {
    user_folder().is_some_and(|folder| file.starts_with(folder))
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Returns the reason why another user could have created or changed a file, or `None` if that is impossible.
///
/// The file and its folder must belong to this user or root, and must not be writable by everyone, even with the
/// sticky bit of a folder such as `/tmp`. A symbolic link is checked at both of its ends.
fn distrust(file: &Path) -> Option<String> {
    let target = fs::canonicalize(file);
    let target = target.as_deref().unwrap_or(file);
    let folders = [file.parent(), target.parent()].into_iter().flatten();
    let folders = folders.map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
    std::iter::once(target).chain(folders).find_map(|place| {
        let metadata = match fs::metadata(place) {
            Ok(metadata) => metadata,
            Err(error) => return Some(format!("{} cannot be examined: {error}", place.display())),
        };
        // The error already names the file.
        let name = if place == file { String::new() } else { format!("{} ", place.display()) };
        trouble(&metadata).map(|trouble| format!("{name}{trouble}"))
    })
}

#[cfg(unix)]
fn trouble(metadata: &Metadata) -> Option<&'static str> {
    use std::os::unix::fs::MetadataExt as _;

    let me = rustix::process::geteuid().as_raw();
    trouble_of(metadata.mode(), metadata.uid(), me)
}

/// Permissions are checked on Unix only.
#[cfg(not(unix))]
const fn trouble(_: &Metadata) -> Option<&'static str> {
    None
}

#[cfg(unix)]
const fn trouble_of(mode: u32, owner: u32, me: u32) -> Option<&'static str> {
    const ROOT: u32 = 0;
    const WRITABLE_BY_EVERYONE: u32 = 0o002;

    if owner != me && owner != ROOT {
        Some("belongs to another user")
    } else if mode & WRITABLE_BY_EVERYONE != 0 {
        Some("can be written by everyone")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::project;
    use std::path::PathBuf;

    #[test]
    fn the_project_ends_at_the_repository_and_outside_of_one_at_the_current_folder() {
        let top = std::env::temp_dir().join(format!("formwork-find-{}", std::process::id()));
        let deep = top.join("repository/a/b");
        std::fs::create_dir_all(&deep).unwrap();
        let folders = |here: &PathBuf| project(here).collect::<Vec<_>>();
        assert_eq!(folders(&deep), vec![deep.clone()], "no repository");
        // A worktree has a file called `.git`.
        std::fs::write(top.join("repository/.git"), "gitdir: elsewhere").unwrap();
        let (root, middle) = (top.join("repository"), top.join("repository/a"));
        assert_eq!(folders(&deep), [deep.clone(), middle, root.clone()]);
        assert_eq!(folders(&root), [root]);
        assert_eq!(folders(&top), vec![top.clone()], "above the repository");
        std::fs::remove_dir_all(top).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn only_files_of_this_user_or_root_that_not_everyone_can_write_are_trusted() {
        use super::trouble_of;

        for (mode, owner, trusted) in [
            (0o100_644, 1000, true),
            (0o100_600, 1000, true),
            (0o100_664, 1000, true),
            (0o100_644, 0, true),
            (0o040_755, 0, true),
            (0o100_644, 1001, false),
            (0o100_600, 1001, false),
            (0o100_646, 1000, false),
            (0o100_666, 0, false),
            (0o040_777, 1000, false),
            (0o041_777, 0, false),
        ] {
            assert_eq!(trouble_of(mode, owner, 1000).is_none(), trusted, "{mode:o} {owner}");
        }
    }
}
