//! Values that satisfied a whole contract, kept for a time.

use std::time::Duration;

use formwork_core::Time;
use rusqlite::{OptionalExtension as _, params};

use crate::insert::number;
use crate::queue::Put;
use crate::{Error, KeyId, Ledger};

/// The cache of validated values. What counts as the same request is the caller's: the digest must cover contract, model,
/// messages and sampling.
impl Ledger {
    /// Returns a value that was cached for this key and digest and has not expired, as it was given. Reads the file, unless the value is
    /// not written yet.
    ///
    /// # Errors
    /// [`Error::Storage`]; a caller can continue as without a cached value.
    pub fn cache_get(&self, key: Option<KeyId>, digest: &str, now: Time) -> Result<Option<String>, Error> {
        let sql = "SELECT value FROM cache WHERE key = ?1 AND digest = ?2 AND expires > ?3";
        let key = key.map_or(0, |key| key.0);
        if let Some(put) = self.core().queue.find_put(key, digest) {
            return Ok((put.expires > now).then(|| put.value.clone()));
        }
        self.core().store.read(|connection| {
            connection
                .prepare_cached(sql)?
                .query_row(params![key, digest, number(now.0)], |row| row.get(0))
                .optional()
        })
    }

    /// Caches a value for a key and a digest.
    ///
    /// The call never blocks. This process can read the value at once, others after its group was committed
    /// ([`Settings::group_delay`](crate::Settings::group_delay)). If the queue is full, the value is dropped and counted. Values
    /// are not redacted.
    pub fn cache_put(
        &self,
        key: Option<KeyId>,
        digest: impl Into<String>,
        value: impl Into<String>,
        ttl: Duration,
        now: Time,
    ) {
        let (digest, value) = (digest.into(), value.into());
        let put =
            Put { key: key.map_or(0, |key| key.0), digest, value, created: now, expires: now.after(ttl) };
        if !self.core().queue.push_put(put, &self.core().settings) {
            self.core().counts().shed_values += 1;
        }
    }
}
