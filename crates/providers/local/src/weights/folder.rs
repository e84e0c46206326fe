use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::LocalError;

/// Returns the cache folder of the environment.
pub(crate) fn default() -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = set("FORMWORK_CACHE") {
        return Some(folder);
    }
    let own = if cfg!(target_os = "windows") {
        set("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        set("HOME").map(|home| home.join("Library/Caches"))
    } else {
        // The XDG base directory specification requires to ignore relative paths.
        set("XDG_CACHE_HOME")
            .filter(|folder| folder.is_absolute())
            .or_else(|| set("HOME").map(|home| home.join(".cache")))
    };
    own.map(|folder| folder.join("formwork"))
}

/// Returns whether the environment forbids downloads.
pub(crate) fn offline() -> bool {
    env::var_os("FORMWORK_OFFLINE").is_some_and(|value| !value.is_empty() && value != "0")
}

/// A temporary folder for incomplete files, removed with its contents on drop.
///
/// It is inside the cache, so that a finished file can be renamed to its place: other processes see it whole or not at
/// all.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(cache: &Path) -> Result<Self, LocalError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        // The process id and a counter distinguish threads and processes, the time distinguishes a killed process with
        // the same id.
        let time = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos());
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = cache.join("tmp").join(format!("{}-{count}-{time}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| LocalError::file(&folder, error))?;
        Ok(Self(folder))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Moves a finished file to its place; an existing file is replaced.
    pub(crate) fn finish(&self, file: &Path, to: &Path) -> Result<(), LocalError> {
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder).map_err(|error| LocalError::file(folder, error))?;
        }
        fs::rename(file, to).map_err(|error| LocalError::file(to, error))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Remaining files cost disk space only.
        let _ = fs::remove_dir_all(&self.0);
    }
}
