//! What was found of servers, kept on disk: the same server and model are asked once.

use std::fs;
use std::path::PathBuf;

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
        Some(Self(crate::cache::folder()?.join("probes").join(format!("{name}.json"))))
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
