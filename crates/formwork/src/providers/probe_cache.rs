use std::fs;
use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

/// A file in the cache folder with the result of a probe, so that each server and model is probed once.
///
/// The key is everything that the result depends on: the configuration of the provider without secrets, the version of
/// the server, the digest of the model. The file name is the key's SHA-256.
///
/// ```no_run
/// use formwork::providers::ProbeCache;
///
/// let cache = ProbeCache::of(&("acme", "http://127.0.0.1:8080", "model-1", "server 2.4"));
/// let enforces: Option<bool> = cache.as_ref().and_then(ProbeCache::read);
/// let enforces = enforces.unwrap_or_else(|| {
///     let found = true; // asks the server
///     if let Some(cache) = &cache {
///         cache.write(&found);
///     }
///     found
/// });
/// # let _ = enforces;
/// ```
#[derive(Debug, Clone)]
pub struct ProbeCache(PathBuf);

impl ProbeCache {
    /// Returns the cache of a key; `None` if there is no cache folder.
    pub fn of(key: &impl Serialize) -> Option<Self> {
        let key = serde_json::to_vec(key).ok()?;
        let name: String = Sha256::digest(key).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Some(Self(crate::cache::folder()?.join("probes").join(format!("{name}.json"))))
    }

    /// Returns the cached result; `None` if there is none or it is not a valid `T`.
    pub fn read<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(&fs::read(&self.0).ok()?).ok()
    }

    /// Stores a result. Errors are ignored: the server is then probed again.
    pub fn write(&self, found: &impl Serialize) {
        _ = self.try_write(found);
    }

    fn try_write(&self, found: &impl Serialize) -> Option<()> {
        fs::create_dir_all(self.0.parent()?).ok()?;
        // The complete file is renamed, so that another process never reads half of it.
        let own = self.0.with_extension(format!("{}.new", std::process::id()));
        fs::write(&own, serde_json::to_vec(found).ok()?).ok()?;
        fs::rename(own, &self.0).ok()
    }
}
