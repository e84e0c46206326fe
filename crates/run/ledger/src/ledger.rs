use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::core::Core;
use crate::queue::Task;
use crate::recover::recover;
use crate::store::{LEDGER, Store, free_bytes};
use crate::task::{Committed, Job, block_on, job};
use crate::{Error, Health, RunRecord, Settings, Unwritten, usd, writer};

/// A SQLite file with runs, spending and keys. Clones are handles to the same ledger; the last one that is dropped writes
/// what waits and closes it.
///
/// Several processes may use one file. Functions that read or write block the calling thread unless they are `async` or
/// say that they do not; a service calls them on a thread for blocking work.
///
/// ```
/// use formwork_core::Time;
/// use formwork_ledger::{Ledger, RunQuery, RunRecord, Settings};
///
/// let ledger = Ledger::in_memory(Settings::default())?;
/// ledger.record(RunRecord::new("extract", Time(1_795_000_000_000)));
/// ledger.flush_blocking()?;
/// assert_eq!(ledger.runs(&RunQuery::default())?.runs[0].source, "extract");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Ledger(Arc<Handle>);

struct Handle {
    core: Arc<Core>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger").field("store", &self.0.core.store).finish_non_exhaustive()
    }
}

impl Ledger {
    /// Opens a ledger, creates it if there is no file, and brings a file of an older version to the newest format. Runs that killed
    /// processes left beside it are recorded, and their costs replace what was reserved for them. On Unix its
    /// owner alone may read it: mode 0600, which a file with another mode is given with a warning.
    ///
    /// # Errors
    /// [`Error::File`] as the file system says, [`Error::NotALedger`] for a file that holds something else, which is left as it is,
    /// [`Error::Newer`] for a file of a later version.
    pub fn open(path: impl AsRef<Path>, settings: Settings) -> Result<Self, Error> {
        let (path, store) = (path.as_ref(), Store::open(path.as_ref(), &LEDGER)?);
        recover(&store, path);
        Self::start(store, settings, Some(path.to_owned()))
    }

    /// Opens a ledger to read it. The file is not changed, and everything that is recorded is lost. The file and its folder may be
    /// read-only, and their disk full.
    ///
    /// # Errors
    /// The errors of [`Ledger::open`], also for a file that does not exist or is of an older version.
    pub fn view(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::start(Store::view(path.as_ref(), &LEDGER)?, Settings::default(), Some(path.as_ref().to_owned()))
    }

    /// Returns a ledger that is gone when it is closed: for tests, and for services that keep nothing.
    ///
    /// # Errors
    /// [`Error::Storage`] if SQLite has no memory.
    pub fn in_memory(settings: Settings) -> Result<Self, Error> {
        Self::start(Store::in_memory()?, settings, None)
    }

    pub(crate) fn start(store: Store, settings: Settings, place: Option<PathBuf>) -> Result<Self, Error> {
        let core = Arc::new(Core::new(store, settings, place));
        let of_writer = Arc::clone(&core);
        let writer = thread::Builder::new()
            .name("formwork-ledger".to_owned())
            .spawn(move || writer::run(&of_writer))
            .map_err(|error| Error::Invalid(format!("the ledger's thread cannot be started: {error}")))?;
        Ok(Self(Arc::new(Handle { core, writer: Mutex::new(Some(writer)) })))
    }

    /// Records a run. It never waits or fails: without space in the queue or on the disk, data are omitted and counted, first
    /// requests and answers, then whole runs. [`Ledger::health`] has the counts. When it returns, a line of the run, without its texts and violations, is in
    /// a file beside the ledger, and stays there until the run is in the ledger, so that the end of the process does not lose it.
    pub fn record(&self, run: RunRecord) {
        self.0.core.record(run);
    }

    /// Returns whether requests and answers are kept: [`Settings::bodies`].
    pub fn keeps_bodies(&self) -> bool {
        self.0.core.settings.bodies
    }

    /// Returns the numbers of recorded and dropped items since the ledger was opened, without reading the file.
    pub fn health(&self) -> Health {
        self.0.core.health()
    }

    /// Waits until everything that was recorded before is written, or shed.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub async fn flush(&self) -> Result<(), Error> {
        self.submit_flush().await
    }

    /// The same as [`Ledger::flush`] for callers without a runtime: blocks the thread.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn flush_blocking(&self) -> Result<(), Error> {
        block_on(self.submit_flush())
    }

    /// Writes the file without changing it, to find out whether it can be written: not with a full disk, a damaged file, or another
    /// process that locks it, for which the write waits up to five seconds.
    ///
    /// # Errors
    /// [`Error::Replaced`], [`Error::Storage`], [`Error::Closed`].
    pub async fn probe(&self) -> Result<(), Error> {
        self.0.core.in_place()?;
        self.submit(|connection| connection.pragma_update(None, "user_version", LEDGER.steps.len() as i64))
            .await
    }

    /// Returns the number of bytes that are free on the disk of the file; `None` in memory, and where the system does not tell.
    pub fn free_bytes(&self) -> Option<u64> {
        free_bytes(self.0.core.place()?)
    }

    /// Writes the queue and ends the writer, also for other handles. Runs that are recorded afterwards are counted as
    /// shed, and writes fail; reading still works. Blocks the thread.
    pub fn close(&self) {
        self.0.close(None);
    }

    /// Closes the ledger like [`Ledger::close`], but waits for `within` at most, for a process that must end although another one locks
    /// the file. Returns, and logs, what is not written by then.
    pub fn close_within(&self, within: Duration) -> Unwritten {
        let shed_before = self.health().shed_runs;
        self.0.close(Some(within));
        let left = self.0.core.unwritten(shed_before);
        if left != Unwritten::default() {
            let Unwritten { waiting, runs, settlements, amount } = left;
            let (path, usd) = (self.0.core.path_text(), usd::format(amount));
            tracing::error!(
                path,
                "the ledger could not be written before the end: the next process that opens it records {waiting} runs, and these are \
                 lost: runs: {runs}, costs of calls: at most {settlements} ({usd} US dollars)"
            );
        }
        left
    }

    fn submit_flush(&self) -> Committed<()> {
        let (done, end) = oneshot::channel();
        // A closed ledger drops the sender, which wakes the caller that waits.
        let _ = self.0.core.queue.push_task(Task::Flush(done));
        Committed::new(end)
    }

    /// Runs a write in the writer's next transaction.
    pub(crate) fn submit<T: Send + 'static>(
        &self,
        write: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Committed<T> {
        self.submit_then(write, |value| value)
    }

    /// The same as [`Self::submit`]; `then` makes the value for the caller once the write is committed.
    pub(crate) fn submit_then<T: Send + 'static, U: Send + 'static>(
        &self,
        write: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
        then: impl FnOnce(T) -> U + Send + 'static,
    ) -> Committed<U> {
        let (job, committed) = job(write, then);
        self.submit_job(job);
        committed
    }

    pub(crate) fn submit_job(&self, job: Box<dyn Job>) {
        if let Err(Task::Write(job)) = self.0.core.queue.push_task(Task::Write(job)) {
            job.report(Err(Error::Closed));
        }
    }

    pub(crate) fn core(&self) -> &Core {
        &self.0.core
    }

    pub(crate) fn weak(&self) -> Weak<Core> {
        Arc::downgrade(&self.0.core)
    }
}

impl Handle {
    /// Ends the writer, and waits for it: for `within` at most, if that is set.
    fn close(&self, within: Option<Duration>) {
        self.core.queue.close();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            // The writer's thread itself may hold the last handle, in a write; it cannot wait for itself.
            let is_other = writer.thread().id() != thread::current().id();
            if is_other && within.is_none_or(|within| self.core.queue.wait_for_end(within)) {
                let _ = writer.join();
            }
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.close(None);
    }
}
