//! The state that the writer's thread and all handles share.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use serde::Serialize;

use crate::known::Known;
use crate::memory::Memory;
use crate::process::Process;
use crate::queue::Queue;
use crate::store::Store;
use crate::task::Job;
use crate::{Error, RunRecord, Settings};

pub(crate) struct Core {
    pub(crate) store: Store,
    pub(crate) queue: Queue,
    pub(crate) settings: Settings,
    /// The keys that were looked up lately.
    pub(crate) known: Known,
    /// The path of the file; `None` in memory.
    place: Option<PathBuf>,
    /// The mark of this process, made for the first reservation; `None` where it cannot be made.
    process: OnceLock<Option<Process>>,
    /// Settlements that could not be written.
    unsettled: Mutex<Vec<Box<dyn Job>>>,
    /// Spending that is not in the file yet.
    pub(crate) memory: Memory,
    /// The error of the last write; `None` after one that succeeded.
    failure: Mutex<Option<Error>>,
    /// Without the number of queued runs.
    health: Mutex<Health>,
}

/// Counts of the ledger's work since it was opened, for metrics.
///
/// ```
/// use formwork_core::Time;
/// use formwork_ledger::{Ledger, RunRecord, Settings};
///
/// let ledger = Ledger::in_memory(Settings::default())?;
/// ledger.record(RunRecord::new("extract", Time(1_795_000_000_000)));
/// ledger.flush_blocking()?;
/// let health = ledger.health();
/// assert_eq!((health.recorded, health.shed_runs, health.errors), (1, 0, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Health {
    /// Runs in the queue.
    pub queued: u64,
    /// Runs that were written.
    pub recorded: u64,
    /// Runs that were recorded without their requests and answers, because the queue or the disk was full, or a body was too long.
    pub shed_bodies: u64,
    /// Runs that were lost, because the queue or the disk was full.
    pub shed_runs: u64,
    /// Values that were not cached, because the queue was full.
    pub shed_values: u64,
    /// Writes that failed, with any number of runs in each.
    pub errors: u64,
    /// The message of the last such write; `None` once a later group was written.
    pub last_error: Option<String>,
    /// Whether the last group of runs could not be written.
    pub lacks_runs: bool,
}

impl Core {
    pub(crate) fn new(store: Store, settings: Settings, place: Option<PathBuf>) -> Self {
        Self {
            store,
            place,
            process: OnceLock::new(),
            queue: Queue::default(),
            settings,
            known: Known::default(),
            unsettled: Mutex::default(),
            memory: Memory::default(),
            failure: Mutex::default(),
            health: Mutex::default(),
        }
    }

    pub(crate) fn place(&self) -> Option<&Path> {
        self.place.as_deref()
    }

    /// Returns the name of this process among those that use the file.
    pub(crate) fn process(&self) -> Option<&str> {
        let place = self.place.as_ref()?;
        self.process.get_or_init(|| Process::new(place)).as_ref().map(Process::name)
    }

    pub(crate) fn health(&self) -> Health {
        Health { queued: self.queue.len() as u64, ..lock(&self.health).clone() }
    }

    /// Queues a run, without its bodies if the queue has no space for them.
    pub(crate) fn record(&self, mut run: RunRecord) {
        use crate::queue::Queued;
        if self.settings.bodies {
            self.counts().shed_bodies += u64::from(run.drop_long_bodies(self.settings.max_body));
        } else {
            run.drop_bodies();
        }
        match self.queue.push_run(run, &self.settings) {
            Queued::Whole => {}
            Queued::WithoutBodies => self.counts().shed_bodies += 1,
            Queued::Not => self.counts().shed_runs += 1,
        }
    }

    /// Returns the counts, to change them.
    pub(crate) fn counts(&self) -> MutexGuard<'_, Health> {
        lock(&self.health)
    }

    /// Counts a write that failed; the first of a row of failures is logged.
    pub(crate) fn note(&self, error: &rusqlite::Error) {
        let mut health = lock(&self.health);
        health.errors += 1;
        if health.last_error.is_none() {
            tracing::error!(%error, "the ledger cannot be written: runs are shed until it can");
        }
        health.last_error = Some(error.to_string());
    }

    /// Returns the error of the last write; `None` after one that succeeded.
    pub(crate) fn failure(&self) -> Option<Error> {
        lock(&self.failure).clone()
    }

    /// Notes how a write ended.
    pub(crate) fn wrote(&self, failure: Option<Error>) {
        *lock(&self.failure) = failure;
    }

    pub(crate) fn push_unsettled(&self, job: Box<dyn Job>) {
        lock(&self.unsettled).push(job);
    }

    pub(crate) fn take_unsettled(&self) -> Vec<Box<dyn Job>> {
        std::mem::take(&mut *lock(&self.unsettled))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
