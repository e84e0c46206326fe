//! The progress line of model calls on a terminal.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use formwork_core::{CallRecord, CallResult, Delta, Error, Failure, Outcome};
use formwork_extract::{Observer, RunId, Started};
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use serde_json::Value;

use crate::commands::extract::report::{warnings, weaker};
use crate::stderr::say;
use crate::terminal::{Bar, seconds};

/// An observer that shows the state of all its runs in one line.
#[derive(Default)]
pub(crate) struct Spinner {
    /// Whether observations about targets are printed.
    has_notes: bool,
    /// The notes of calls and the warnings of outcomes that were printed, each once: a conversation has many outcomes.
    notes: Mutex<BTreeSet<String>>,
    bar: Mutex<Option<Bar>>,
    // The thread that draws the bar locks this too, so changing a bar while it is locked would deadlock.
    runs: Arc<Mutex<Runs<RunId>>>,
}

struct Runs<Id> {
    open: BTreeMap<Id, Doing>,
    /// The reason for the last failed call of each run.
    failures: BTreeMap<Id, String>,
}

impl<Id> Default for Runs<Id> {
    fn default() -> Self {
        Self { open: BTreeMap::new(), failures: BTreeMap::new() }
    }
}

enum Doing {
    Calling { attempt: u32, target: String, pieces: usize, since: Instant },
    Waiting { why: String, until: Instant },
}

/// The maximum length of the line in characters: most terminals would wrap a longer line.
const MAX_LINE: usize = 110;

impl<Id> Runs<Id> {
    /// Returns the line.
    fn line(&self, now: Instant) -> String {
        let line = match self.open.values().collect::<Vec<_>>().as_slice() {
            [] => String::new(),
            [one] => one.line(now),
            many => {
                let calls = many.iter().filter_map(|doing| match doing {
                    Doing::Calling { pieces, since, .. } => Some((*pieces, *since)),
                    Doing::Waiting { .. } => None,
                });
                let (count, pieces, since) =
                    calls.fold((0_usize, 0, None::<Instant>), |(count, all, first), (pieces, since)| {
                        (count + 1, all + pieces, Some(first.map_or(since, |first| first.min(since))))
                    });
                match (since, many) {
                    (Some(since), _) => {
                        let elapsed = seconds(now.saturating_duration_since(since));
                        format!("{count} calls: {pieces} pieces, {elapsed}")
                    }
                    (None, [first, ..]) => first.line(now),
                    (None, []) => String::new(),
                }
            }
        };
        match line.char_indices().nth(MAX_LINE) {
            Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
            None => line,
        }
    }
}

impl Doing {
    fn line(&self, now: Instant) -> String {
        match self {
            Self::Calling { attempt, target, pieces, since } => {
                let elapsed = seconds(now.saturating_duration_since(*since));
                match pieces {
                    0 => format!("attempt {attempt} at {target}: reading the prompt, {elapsed}"),
                    1 => format!("attempt {attempt} at {target}: 1 piece, {elapsed}"),
                    pieces => format!("attempt {attempt} at {target}: {pieces} pieces, {elapsed}"),
                }
            }
            Self::Waiting { why, until } => {
                // Rounded up, so that the line does not show 0 s while the run still waits.
                let left = until.saturating_duration_since(now) + Duration::from_millis(999);
                format!("{why}; again in {}", seconds(left))
            }
        }
    }
}

impl Spinner {
    pub(crate) fn new() -> Self {
        Self { has_notes: true, ..Self::default() }
    }

    /// Returns a spinner for runs with a log of their own.
    pub(crate) fn without_notes() -> Self {
        Self::default()
    }

    fn say_once(&self, warning: String) {
        if lock(&self.notes).insert(warning.clone()) {
            say!("warning: {warning}");
        }
    }

    /// Changes the state of runs. Shows the line as long as a run is active.
    fn change(&self, change: impl FnOnce(&mut Runs<RunId>)) {
        let is_open = {
            let mut runs = lock(&self.runs);
            change(&mut runs);
            !runs.open.is_empty()
        };
        let mut bar = lock(&self.bar);
        if !is_open {
            *bar = None;
        } else if bar.is_none() {
            *bar = self.show();
        }
    }

    fn show(&self) -> Option<Bar> {
        let runs = self.runs.clone();
        let line = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
            _ = out.write_str(&lock(&runs).line(Instant::now()));
        };
        let style = ProgressStyle::with_template("{spinner} {line}").ok()?.with_key("line", line);
        Bar::open(ProgressBar::new_spinner(), style)
    }
}

impl Observer for Spinner {
    fn call_started(&self, run: RunId, started: &Started<'_>) {
        let (attempt, target) = (started.attempt, started.target.to_owned());
        self.change(|runs| {
            runs.open.insert(run, Doing::Calling { attempt, target, pieces: 0, since: Instant::now() });
        });
    }

    fn delta(&self, run: RunId, delta: &Delta) {
        let is_piece = matches!(delta, Delta::Text(_) | Delta::Reasoning(_) | Delta::ToolCall(_));
        if let Some(Doing::Calling { pieces, .. }) = lock(&self.runs).open.get_mut(&run) {
            *pieces += usize::from(is_piece);
        }
    }

    fn call_finished(&self, run: RunId, call: &CallRecord) {
        if call.verdict == CallResult::Probe {
            return;
        }
        let why = match call.verdict.failure() {
            Some(Failure::Fault(fault)) => format!("{}: {}", call.target, fault.message),
            _ => call.target.clone(),
        };
        self.change(|runs| {
            runs.open.remove(&run);
            runs.failures.insert(run, why);
        });
        if self.has_notes {
            weaker(call);
            call.notes.iter().for_each(|note| self.say_once(note.clone()));
        }
    }

    fn waiting(&self, run: RunId, wait: Duration) {
        let now = Instant::now();
        self.change(|runs| {
            let why = runs.failures.get(&run).cloned().unwrap_or_else(|| "waiting".to_owned());
            runs.open.insert(run, Doing::Waiting { why, until: now.checked_add(wait).unwrap_or(now) });
        });
    }

    fn done(&self, run: RunId, result: &Result<Outcome<Value>, Error>) {
        self.change(|runs| {
            runs.open.remove(&run);
            runs.failures.remove(&run);
        });
        if self.has_notes {
            warnings(result).for_each(|warning| self.say_once(warning.to_string()));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_is_waited_for() {
        let since = Instant::now();
        let calling = |pieces| Doing::Calling { attempt: 2, target: "a".to_owned(), pieces, since };
        let waiting = |why: &str| {
            let until = since + Duration::from_millis(10_500);
            Doing::Waiting { why: why.to_owned(), until }
        };
        let long = "x".repeat(200);
        for (after, doing, line) in [
            (7, calling(0), "attempt 2 at a: reading the prompt, 7 s".to_owned()),
            (7, calling(1), "attempt 2 at a: 1 piece, 7 s".to_owned()),
            (125, calling(40), "attempt 2 at a: 40 pieces, 2 min 5 s".to_owned()),
            (7, waiting("ollama: nothing listens"), "ollama: nothing listens; again in 4 s".to_owned()),
            (20, waiting("ollama: nothing listens"), "ollama: nothing listens; again in 0 s".to_owned()),
            (0, waiting(&long), format!("{}…", "x".repeat(MAX_LINE))),
        ] {
            let mut runs = Runs::default();
            runs.open.insert(1, doing);
            assert_eq!(runs.line(since + Duration::from_secs(after)), line);
        }
        let mut runs = Runs::default();
        assert_eq!(runs.line(since), "");
        runs.open.insert(1, calling(3));
        runs.open.insert(2, calling(4));
        runs.open.insert(3, waiting("a: slow down"));
        assert_eq!(runs.line(since + Duration::from_secs(2)), "2 calls: 7 pieces, 2 s");
        runs.open.retain(|id, _| *id == 3);
        runs.open.insert(4, waiting("b: slow down"));
        assert_eq!(runs.line(since + Duration::from_secs(2)), "a: slow down; again in 9 s");
    }
}
