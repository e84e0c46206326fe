//! The queue of the writer. Runs and cached values may be shed, tasks never are.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use formwork_core::Time;
use tokio::sync::oneshot;

use crate::process::Process;
use crate::task::Job;
use crate::{Error, RunRecord, Settings};

pub(crate) enum Task {
    Write(Box<dyn Job>),
    /// Write the whole queue, then notify the sender.
    Flush(oneshot::Sender<Result<(), Error>>),
}

/// A value that is to be cached.
pub(crate) struct Put {
    pub(crate) key: i64,
    pub(crate) digest: String,
    pub(crate) value: String,
    pub(crate) created: Time,
    pub(crate) expires: Time,
}

#[derive(Default)]
struct State {
    runs: Vec<RunRecord>,
    puts: Vec<Arc<Put>>,
    /// The values that are being written.
    writing: Vec<Arc<Put>>,
    /// The bytes of bodies and of cached values that wait.
    bytes: usize,
    /// The time by which the oldest run or value must be written.
    due: Option<Instant>,
    /// The time before which runs are not written, because the last attempt failed.
    not_before: Option<Instant>,
    tasks: Vec<Task>,
    /// The number of runs that are being written.
    writing_runs: usize,
    /// The lines of all runs that wait or are being written.
    lines: Lines,
    /// Whether the writer has ended.
    has_ended: bool,
    /// Whether the writer sleeps until it is woken.
    is_idle: bool,
    is_closed: bool,
}

#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    wake: Condvar,
    ended: Condvar,
}

/// The work that the writer has to do now.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) tasks: Vec<Task>,
    pub(crate) runs: Vec<RunRecord>,
    pub(crate) puts: Vec<Arc<Put>>,
    /// The lines of these runs, and of those before them.
    pub(crate) lines: Lines,
    pub(crate) is_last: bool,
}

/// Lines of runs in the mark of the process.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lines {
    bytes: u64,
    /// The number of runs without a line.
    missing: u64,
}

/// The fate of a run that was to be queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Queued {
    Whole,
    WithoutBodies,
    Not,
}

/// The time after which runs that could not be written are tried again.
const AGAIN: Duration = Duration::from_secs(1);

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a run, and writes its line to the mark of the process.
    pub(crate) fn push_run(
        &self,
        mut run: RunRecord,
        line: Option<(&Process, Vec<u8>)>,
        settings: &Settings,
    ) -> Queued {
        let bytes = run.body_bytes();
        let mut state = self.lock();
        if state.is_closed || state.runs.len() >= settings.max_queued {
            return Queued::Not;
        }
        let is_whole = bytes == 0 || state.bytes + bytes <= settings.max_queued_bytes;
        if is_whole {
            state.bytes += bytes;
        } else {
            run.drop_bodies();
        }
        state.runs.push(run);
        match line.and_then(|(mark, line)| mark.note(state.lines.bytes, &line)) {
            Some(bytes) => state.lines.bytes = bytes,
            None => state.lines.missing += 1,
        }
        self.wake(state, settings);
        if is_whole { Queued::Whole } else { Queued::WithoutBodies }
    }

    /// Takes runs back that could not be written, before those that came after them. Returns the number of those that are shed, because
    /// the queue has no room.
    pub(crate) fn put_back(&self, mut runs: Vec<RunRecord>, settings: &Settings) -> usize {
        let mut state = self.lock();
        let room = settings.max_queued.saturating_sub(state.runs.len());
        let shed = runs.len().saturating_sub(room);
        runs.drain(..shed);
        state.bytes += runs.iter().map(RunRecord::body_bytes).sum::<usize>();
        state.runs.splice(0..0, runs);
        state.writing_runs = 0;
        let again = Instant::now() + AGAIN;
        (state.due, state.not_before) = (Some(again), Some(again));
        shed
    }

    /// Returns whether there was room.
    pub(crate) fn push_put(&self, put: Put, settings: &Settings) -> bool {
        let mut state = self.lock();
        if state.is_closed || state.bytes + put.value.len() > settings.max_queued_bytes {
            return false;
        }
        state.bytes += put.value.len();
        state.puts.push(put.into());
        self.wake(state, settings);
        true
    }

    /// Returns the last value of a key and a digest that is not in the file yet.
    pub(crate) fn find_put(&self, key: i64, digest: &str) -> Option<Arc<Put>> {
        let state = self.lock();
        let mut all = state.writing.iter().chain(&state.puts).rev();
        all.find(|put| put.key == key && put.digest == digest).cloned()
    }

    /// Notes that the values that were taken are in the file.
    pub(crate) fn has_written(&self) {
        self.lock().writing.clear();
    }

    /// Notes that the runs that were taken are in the file, or lost, and removes their lines.
    pub(crate) fn has_written_runs(&self, mark: Option<&Process>, lines: Lines) {
        let mut state = self.lock();
        state.writing_runs = 0;
        state.lines.missing = state.lines.missing.saturating_sub(lines.missing);
        if let Some(mark) = mark {
            state.lines.bytes = mark.forget(state.lines.bytes, lines.bytes);
        }
    }

    /// Sets the time of the group, and wakes the writer where it would not wake in time.
    fn wake(&self, mut state: MutexGuard<'_, State>, settings: &Settings) {
        let is_full = state.runs.len() + state.puts.len() == settings.group_size;
        if state.due.is_none() {
            state.due = Some(Instant::now() + settings.group_delay);
        }
        let is_idle = state.is_idle;
        drop(state);
        if is_idle || is_full {
            self.wake.notify_one();
        }
    }

    /// Returns the task if the ledger is closed.
    pub(crate) fn push_task(&self, task: Task) -> Result<(), Task> {
        let mut state = self.lock();
        if state.is_closed {
            return Err(task);
        }
        state.tasks.push(task);
        drop(state);
        self.wake.notify_one();
        Ok(())
    }

    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.wake.notify_one();
    }

    /// Closes the queue for a writer that has ended, and tells everybody who waits.
    pub(crate) fn abandon(&self) {
        let mut state = self.lock();
        (state.is_closed, state.has_ended) = (true, true);
        self.ended.notify_all();
        // Dropping a task drops its sender, which wakes the caller that waits.
        drop(std::mem::take(&mut state.tasks));
    }

    /// Waits until the writer has ended, for `within` at most. Returns whether it has.
    pub(crate) fn wait_for_end(&self, within: Duration) -> bool {
        let ended = self.ended.wait_timeout_while(self.lock(), within, |state| !state.has_ended);
        ended.unwrap_or_else(PoisonError::into_inner).0.has_ended
    }

    /// Returns how many runs wait, those that are being written included.
    pub(crate) fn len(&self) -> usize {
        let state = self.lock();
        state.runs.len() + state.writing_runs
    }

    /// Returns how many runs without a line the queue had, and forgets them.
    pub(crate) fn shed_at_risk(&self) -> usize {
        std::mem::take(&mut self.lock().lines.missing) as usize
    }

    /// Returns how many of the runs that are not in the file are lost if the process ends.
    pub(crate) fn at_risk(&self) -> u64 {
        self.lock().lines.missing
    }

    /// Waits until there is something to do.
    pub(crate) fn take(&self, settings: &Settings) -> Batch {
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            let is_flush = state.is_closed || state.tasks.iter().any(|task| matches!(task, Task::Flush(_)));
            let is_due = is_flush
                || state.not_before.is_none_or(|at| at <= now)
                    && (state.runs.len() + state.puts.len() >= settings.group_size.max(1)
                        || state.due.is_some_and(|due| due <= now));
            if is_due {
                (state.bytes, state.due, state.not_before, state.is_idle) = (0, None, None, false);
                state.writing = std::mem::take(&mut state.puts);
                state.writing_runs = state.runs.len();
                return Batch {
                    tasks: std::mem::take(&mut state.tasks),
                    runs: std::mem::take(&mut state.runs),
                    puts: state.writing.clone(),
                    lines: state.lines,
                    is_last: state.is_closed,
                };
            }
            if !state.tasks.is_empty() {
                state.is_idle = false;
                return Batch { tasks: std::mem::take(&mut state.tasks), ..Batch::default() };
            }
            state = if let Some(due) = state.due.max(state.not_before) {
                state.is_idle = false;
                let wait = self.wake.wait_timeout(state, due.saturating_duration_since(now));
                wait.unwrap_or_else(PoisonError::into_inner).0
            } else {
                state.is_idle = true;
                self.wake.wait(state).unwrap_or_else(PoisonError::into_inner)
            };
        }
    }
}
