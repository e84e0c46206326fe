//! The state that the writer's thread and all handles share.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use serde::Serialize;

use crate::error::is_full;
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
    /// The mark of this process, made for the first reservation or run.
    process: OnceLock<Process>,
    /// Settlements that could not be written.
    unsettled: Mutex<Vec<Box<dyn Job>>>,
    /// Spending that is not in the file yet.
    pub(crate) memory: Memory,
    /// Whether the path had another file than the one that was opened when it was looked at last.
    is_replaced: AtomicBool,
    /// The error of the last write; `None` after one that succeeded.
    failure: Mutex<Option<Error>>,
    /// The present row of failed writes.
    outage: Mutex<Outage>,
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
    /// The message of the last such write; `None` once a later write succeeded.
    pub last_error: Option<String>,
    /// Whether the last group of runs could not be written.
    pub lacks_runs: bool,
}

/// The runs of a row of failed writes.
#[derive(Default)]
struct Outage {
    /// The number of runs that were lost before it.
    shed_before: u64,
    /// The number of runs that are kept until the file can be written.
    late: u64,
}

/// The records that are not in the file when a ledger is closed.
///
/// ```
/// use formwork_ledger::{Ledger, Settings, Unwritten};
///
/// let ledger = Ledger::in_memory(Settings::default())?;
/// assert_eq!(ledger.close_within(std::time::Duration::from_secs(5)), Unwritten::default());
/// # Ok::<(), formwork_ledger::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unwritten {
    /// Runs that wait in a file beside the ledger: the next process that opens the ledger records them.
    pub waiting: u64,
    /// Runs that are lost if the process ends.
    pub runs: u64,
    /// Costs of calls. Those of waiting runs whose reservations are in the file are not lost.
    pub settlements: u64,
    /// The sum of these costs, in millionths of a US dollar.
    pub amount: u64,
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
            is_replaced: AtomicBool::default(),
            failure: Mutex::default(),
            outage: Mutex::default(),
            health: Mutex::default(),
        }
    }

    pub(crate) fn place(&self) -> Option<&Path> {
        self.place.as_deref()
    }

    /// Returns the name of this process among those that use the file.
    pub(crate) fn process(&self) -> Option<&str> {
        self.mark().map(Process::name)
    }

    /// Returns the mark of this process beside the file; `None` where it cannot be made now.
    pub(crate) fn mark(&self) -> Option<&Process> {
        let place = self.place.as_ref().filter(|_| !self.store.is_read_only)?;
        if self.process.get().is_none() {
            // Another thread may have made one meanwhile.
            drop(self.process.set(Process::new(place)?));
        }
        self.process.get()
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
        let line = self.mark().and_then(|mark| Some((mark, run.line(self.settings.redaction)?)));
        match self.queue.push_run(run, line, &self.settings) {
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
            *lock(&self.outage) = Outage { shed_before: health.shed_runs, late: 0 };
            let path = self.path_text();
            if self.is_at_limit(error) {
                tracing::error!(path, %error, "the ledger has its largest size: runs are lost until old ones are deleted");
            } else {
                let max = self.settings.max_queued;
                tracing::error!(path, %error, "the ledger cannot be written: up to {max} runs are kept in memory until it can");
            }
        }
        health.last_error = Some(error.to_string());
    }

    /// Returns whether a write failed because the file has the size of the settings, and stays so.
    pub(crate) fn is_at_limit(&self, error: &rusqlite::Error) -> bool {
        is_full(error) && self.settings.max_bytes.is_some()
    }

    /// Notes the number of runs that are kept until the file can be written.
    pub(crate) fn late(&self, runs: u64) {
        lock(&self.outage).late = runs;
    }

    /// Notes that the file can be written, and logs it after failures.
    pub(crate) fn works_again(&self) {
        let mut health = lock(&self.health);
        if health.last_error.take().is_some() {
            let Outage { shed_before, late } = std::mem::take(&mut *lock(&self.outage));
            let lost = health.shed_runs.saturating_sub(shed_before);
            let path = self.path_text();
            tracing::info!(
                path,
                late,
                lost,
                "the ledger is written again: runs that were written late: {late}, runs that were lost: {lost}"
            );
        }
    }

    pub(crate) fn path_text(&self) -> String {
        self.place.as_ref().map_or_else(|| ":memory:".to_owned(), |place| place.display().to_string())
    }

    /// Returns what is not in the file; `shed_before` is the number of runs that were lost before the time that counts.
    pub(crate) fn unwritten(&self, shed_before: u64) -> Unwritten {
        let (health, at_risk) = (self.health(), self.queue.at_risk());
        let (settlements, amount) = self.memory.unwritten();
        let runs = at_risk + health.shed_runs.saturating_sub(shed_before);
        Unwritten { waiting: health.queued.saturating_sub(at_risk), runs, settlements, amount }
    }

    /// Checks that the path of the ledger has the file that was opened. The first of a row of failures is logged.
    pub(crate) fn in_place(&self) -> Result<(), Error> {
        let found = self.store.in_place();
        let was_replaced = self.is_replaced.swap(found.is_err(), Ordering::Relaxed);
        if let Err(error) = &found
            && !was_replaced
        {
            tracing::error!(%error, "the ledger is no longer at its path");
        }
        found
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
