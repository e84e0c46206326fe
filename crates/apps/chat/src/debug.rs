//! The debug mode: logs the course of a question, and changes nothing.

use std::sync::Arc;
use std::time::Duration;

use formwork_core::{CallRecord, CallResult, Error, Failure, Outcome};
use formwork_extract::{Next, Observer, RunId, Started};
use serde_json::Value;

use crate::result::content_code;

/// The destination of debug lines.
pub(crate) type Sink = Arc<dyn Fn(&str) + Send + Sync>;

/// Writes a line for every attempt, every failure, and the end of a question.
pub(crate) struct Debug {
    pub(crate) sink: Sink,
    /// The maximum number of answers.
    pub(crate) most: u32,
}

impl Debug {
    pub(crate) fn line(&self, line: &str) {
        // A model's text may contain control sequences of terminals.
        let line: String = line.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        (self.sink)(&format!("[chat] {line}"));
    }
}

impl Observer for Debug {
    fn call_started(&self, _: RunId, started: &Started<'_>) {
        let Started { attempt, target, .. } = started;
        self.line(&format!("attempt {attempt}/{}: asking {target}", self.most));
    }

    fn call_finished(&self, _: RunId, call: &CallRecord) {
        let place = format!("attempt {}/{}", call.attempt, self.most);
        match &call.verdict {
            CallResult::Accepted => self.line(&format!("{place}: valid")),
            CallResult::Cancelled => self.line(&format!("{place}: cancelled")),
            CallResult::Probe => self.line(&format!("{place}: the server was probed")),
            CallResult::Failed { failure: Failure::Fault(fault) } => {
                self.line(&format!("{place}: the call failed: {fault}"))
            }
            CallResult::Failed { failure: Failure::Refused { reason } } => {
                let reason = if reason.is_empty() { "it gave no reason" } else { reason };
                self.line(&format!("{place}: the model declined: {reason}"));
            }
            CallResult::Failed { failure } => {
                let plural = if failure.total() == 1 { "error" } else { "errors" };
                self.line(&format!("{place}: {}, {} {plural}", content_code(failure), failure.total()));
                for error in failure.violations() {
                    self.line(&format!("  {error}"));
                }
                if failure.left_out() > 0 {
                    self.line(&format!("  and {} more", failure.left_out()));
                }
            }
        }
    }

    fn asking(&self, _: RunId, next: &Next<'_>) {
        if next.wait == Duration::ZERO {
            self.line(&format!("attempt {}/{} follows", next.attempt, self.most));
        } else {
            self.line(&format!("attempt {}/{} follows after {:?}", next.attempt, self.most, next.wait));
        }
    }

    fn done(&self, _: RunId, result: &Result<Outcome<Value>, Error>) {
        match result {
            Ok(outcome) => {
                let attempts = outcome.calls.last().map_or(0, |last| last.attempt);
                let plural = if attempts == 1 { "attempt" } else { "attempts" };
                self.line(&format!("converged after {attempts} {plural}"));
            }
            Err(error) => self.line(&format!("did not converge: {error}")),
        }
    }
}
