//! Compiled contracts, bounded: the one that was not used for the longest time leaves.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use formwork_extract::Extractor;
use hashlink::LruCache;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::sync::OnceCell;

use crate::problem::{Kind, Problem};

/// Everything that a compiled contract depends on: the digest of its schema, and the other parts as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key(Vec<u8>);

impl Key {
    /// Returns the key of a schema's digest and other parts.
    pub(crate) fn new(schema: &[u8; 32], parts: &impl serde::Serialize) -> Self {
        let mut key = schema.to_vec();
        // Neither the writer nor the types of the parts fail.
        _ = serde_json::to_writer(&mut key, parts);
        Self(key)
    }

    /// Returns the digest of this key and other parts, which can be stored.
    pub(crate) fn digest(&self, parts: &impl serde::Serialize) -> [u8; 32] {
        let mut digest = Sha256::new();
        digest.update(&self.0);
        digest.update(serde_json::to_vec(parts).unwrap_or_default());
        digest.finalize().into()
    }
}

type Compiled = Arc<OnceCell<Result<Extractor<Value>, Problem>>>;

/// Extractors by the digests of their contracts.
#[derive(Debug)]
pub(crate) struct Cache(Mutex<LruCache<Key, Compiled>>);

impl Cache {
    pub(crate) fn new(max: usize) -> Self {
        Self(Mutex::new(LruCache::new(max.max(1))))
    }

    /// Returns the extractor of this key, and whether it was there; compiles it once, however many requests wait for it. An error is
    /// kept as well: the same schema fails in the same way. `None` after `within`: the compilation goes on for later requests.
    pub(crate) async fn get<C>(
        &self,
        key: Key,
        within: Duration,
        compile: impl FnOnce() -> C,
    ) -> Option<(Result<Extractor<Value>, Problem>, bool)>
    where
        C: FnOnce() -> Result<Extractor<Value>, Problem> + Send + 'static,
    {
        let (cell, was_there) = self.cell(key);
        if let Some(known) = cell.get() {
            return Some((known.clone(), was_there));
        }
        let compile = compile();
        let compiled = tokio::spawn(async move {
            let made = || async {
                let failed = |_| Err(Problem::new(Kind::Internal, "the schema could not be compiled"));
                tokio::task::spawn_blocking(compile).await.unwrap_or_else(failed)
            };
            cell.get_or_init(made).await.clone()
        });
        // In a box, which requests that find their contract compiled do not need.
        let compiled = Box::pin(tokio::time::timeout(within, compiled)).await.ok()?.ok()?;
        Some((compiled, was_there))
    }

    fn cell(&self, key: Key) -> (Compiled, bool) {
        let mut cells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cell) = cells.get(&key) {
            return (Arc::clone(cell), true);
        }
        let cell = Compiled::default();
        cells.insert(key, Arc::clone(&cell));
        (cell, false)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn failed(key: u8) -> Result<Extractor<Value>, Problem> {
        Err(Problem::new(Kind::Invalid, key.to_string()))
    }

    #[tokio::test]
    async fn the_oldest_leaves_and_each_is_compiled_once() {
        let cache = Cache::new(2);
        let compiled = Arc::new(AtomicUsize::new(0));
        let get = async |key: u8| {
            let compiled = Arc::clone(&compiled);
            let compile = || {
                move || {
                    compiled.fetch_add(1, Ordering::Relaxed);
                    failed(key)
                }
            };
            let (result, was_there) = cache.get(Key::new(&[key; 32], &()), LONG, compile).await.unwrap();
            assert_eq!(result.unwrap_err().message, key.to_string());
            was_there
        };
        for (key, was_there, so_far) in
            [(1, false, 1), (2, false, 2), (1, true, 2), (3, false, 3), (1, true, 3), (2, false, 4)]
        {
            let got = get(key).await;
            assert_eq!((got, compiled.load(Ordering::Relaxed)), (was_there, so_far), "{key}");
            assert!(cache.0.lock().unwrap().len() <= 2);
        }
    }

    #[tokio::test]
    async fn a_compilation_that_is_late_is_no_error_for_later_requests() {
        let cache = Cache::new(2);
        let key = || Key::new(&[1; 32], &());
        let (go, wait) = mpsc::channel::<()>();
        let slow = || {
            move || {
                wait.recv().unwrap();
                failed(1)
            }
        };
        assert!(cache.get(key(), Duration::ZERO, slow).await.is_none());
        go.send(()).unwrap();
        let again = || || failed(2);
        let (result, was_there) = cache.get(key(), LONG, again).await.unwrap();
        // The first compilation has ended, and a second one was not begun.
        assert_eq!((result.unwrap_err().message.as_str(), was_there), ("1", true));
    }
}
