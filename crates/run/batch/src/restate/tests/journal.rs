//! A journal in memory, which can die.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;

use crate::restate::entry::Entry;
use crate::restate::row::Durable;

/// The journal of one row. It dies at one moment of its life, before it carries a step out, or before it keeps its entry.
#[derive(Default)]
pub(super) struct Journal {
    pub(super) kept: Mutex<Vec<String>>,
    pub(super) at: AtomicUsize,
    /// The moments that have passed.
    pub(super) moments: AtomicUsize,
    pub(super) dies_at: Option<usize>,
}

#[derive(Debug, PartialEq)]
pub(super) struct Died;

impl Journal {
    fn live(&self) -> Result<(), Died> {
        let moment = self.moments.fetch_add(1, Ordering::SeqCst);
        if Some(moment) == self.dies_at { Err(Died) } else { Ok(()) }
    }

    /// Returns the stored result of the next step, if it was carried out before.
    fn again(&self) -> Option<String> {
        let at = self.at.fetch_add(1, Ordering::SeqCst);
        self.kept.lock().unwrap().get(at).cloned()
    }

    fn keep(&self, entry: String) {
        self.kept.lock().unwrap().push(entry);
    }
}

#[async_trait]
impl Durable for Journal {
    type Error = Died;

    async fn step(&self, work: BoxFuture<'static, Entry>) -> Result<Entry, Died> {
        if let Some(entry) = self.again() {
            return Ok(serde_json::from_str(&entry).unwrap());
        }
        self.live()?;
        let entry = work.await;
        self.live()?;
        self.keep(serde_json::to_string(&entry).unwrap());
        Ok(entry)
    }

    async fn sleep(&self, _: Duration) -> Result<(), Died> {
        if self.again().is_none() {
            self.live()?;
            self.keep("null".to_owned());
        }
        Ok(())
    }
}
