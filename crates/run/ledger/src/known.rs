//! The memory of keys that were looked up.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use formwork_core::Time;

use crate::key::{Hash, Key, KeyId};

/// For how long a key that was found is not looked up again, in milliseconds, and that there is none: another process that revokes
/// a key, or adds the first one, is noticed within this time.
const FRESH: u64 = 1000;

/// The maximum number of keys in the cache.
const MAX_KNOWN: usize = 1024;

/// Keys that were found lately, and whether there are any, so that a request does not read the file.
#[derive(Debug, Default)]
pub(crate) struct Known {
    keys: Mutex<HashMap<Hash, (Key, Time)>>,
    /// Whether the file has a key. It stays so, because revoked keys count.
    has_keys: AtomicBool,
    /// The time at which the file had no key; 0 if that is not known.
    had_none: AtomicU64,
    /// Grows with every change of a key, so that what was read before it is not remembered after it.
    changes: AtomicU64,
}

impl Known {
    pub(crate) fn get(&self, hash: &Hash, now: Time) -> Option<Key> {
        let known = self.lock();
        let (key, found) = known.get(hash)?;
        is_fresh(*found, now).then(|| key.clone())
    }

    /// Returns a key that was found within the last hour, for a file that cannot be read.
    pub(crate) fn stale(&self, hash: &Hash, now: Time) -> Option<Key> {
        const HOUR: u64 = 3_600_000;

        let known = self.lock();
        let (key, found) = known.get(hash)?;
        (now.0.saturating_sub(found.0) < HOUR).then(|| key.clone())
    }

    /// Returns a key by its number, as it was found last.
    pub(crate) fn by_id(&self, id: KeyId) -> Option<Key> {
        self.lock().values().map(|(key, _)| key).find(|key| key.id == id).cloned()
    }

    pub(crate) fn has_keys(&self, now: Time) -> Option<bool> {
        if self.has_keys.load(Ordering::Relaxed) {
            return Some(true);
        }
        let looked = self.had_none.load(Ordering::Relaxed);
        (looked != 0 && is_fresh(Time(looked), now)).then_some(false)
    }

    /// Returns the number of changes, for what is remembered after reading the file.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    pub(crate) fn put(&self, hash: Hash, key: Key, now: Time, changes: u64) {
        let mut known = self.lock();
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        if changes == self.changes() {
            known.insert(hash, (key, now));
        }
    }

    pub(crate) fn put_has_keys(&self, has_keys: bool, now: Time, changes: u64) {
        let _known = self.lock();
        if has_keys {
            self.has_keys.store(true, Ordering::Relaxed);
        } else if changes == self.changes() {
            self.had_none.store(now.0, Ordering::Relaxed);
        }
    }

    pub(crate) fn clear(&self) {
        let mut known = self.lock();
        known.clear();
        self.had_none.store(0, Ordering::Relaxed);
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Hash, (Key, Time)>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_fresh(looked: Time, now: Time) -> bool {
    now >= looked && now.0 - looked.0 < FRESH
}
