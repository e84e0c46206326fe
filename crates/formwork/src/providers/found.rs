//! What was found of servers, kept on disk: the same server and model are asked once.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

/// A file for what was found of one server and model.
#[derive(Debug, Clone)]
pub(super) struct Entry(PathBuf);

impl Entry {
    /// The entry of what `key` says; `None` if there is no folder for it.
    pub(super) fn of(key: &impl Serialize) -> Option<Self> {
        let key = serde_json::to_vec(key).ok()?;
        let name: String = Sha256::digest(key).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Some(Self(folder()?.join("probes").join(format!("{name}.json"))))
    }

    /// What was kept; `None` if nothing was, or if it cannot be read.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(&fs::read(&self.0).ok()?).ok()
    }

    /// Keeps what was found. Where that is impossible it is asked for again.
    pub(super) fn write(&self, found: &impl Serialize) {
        _ = self.try_write(found);
    }

    fn try_write(&self, found: &impl Serialize) -> Option<()> {
        fs::create_dir_all(self.0.parent()?).ok()?;
        // Another process never sees half of it.
        let own = self.0.with_extension(format!("{}.new", std::process::id()));
        fs::write(&own, serde_json::to_vec(found).ok()?).ok()?;
        fs::rename(own, &self.0).ok()
    }
}

/// The user's folder for what can be made again: `FORMWORK_CACHE`, else `formwork` below `XDG_CACHE_HOME`, `~/.cache`
/// (`~/Library/Caches` on macOS, `LOCALAPPDATA` on Windows).
fn folder() -> Option<PathBuf> {
    let set = |name| super::variable(name).map(PathBuf::from).filter(|folder| Path::is_absolute(folder));
    if let Some(folder) = set("FORMWORK_CACHE") {
        return Some(folder);
    }
    let home = |below: &str| set("HOME").map(|home| home.join(below));
    let base = if cfg!(windows) {
        set("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        set("XDG_CACHE_HOME").or_else(|| home("Library/Caches"))
    } else {
        set("XDG_CACHE_HOME").or_else(|| home(".cache"))
    };
    base.map(|base| base.join("formwork"))
}
