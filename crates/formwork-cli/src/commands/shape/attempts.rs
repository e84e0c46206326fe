//! The log of a shape runner: every attempt and every error, on standard error, without being asked for.

use formwork_core::{Attempt, Failure, Verdict};
use formwork_extract::{Next, Observer, RunId, Started};

use crate::commands::extract::report::indented;
use crate::stderr::say;

/// Writes what happened to each attempt; `most` is how many there are.
pub(super) struct Attempts {
    pub(super) most: u32,
}

impl Observer for Attempts {
    fn attempt_started(&self, _: RunId, started: &Started<'_>) {
        say!("attempt {}/{}: asking {}", started.attempt, self.most, started.target);
    }

    fn attempt_finished(&self, _: RunId, attempt: &Attempt) {
        let place = format!("attempt {}/{}", attempt.attempt, self.most);
        let failure = match &attempt.verdict {
            Verdict::Accepted => return say!("{place}: all validation passes"),
            Verdict::Cancelled => return say!("{place}: cancelled"),
            Verdict::Failed { failure } => failure,
        };
        match failure {
            Failure::Fault(fault) => say!("{place}: the call failed: {fault}"),
            Failure::Refused { reason } => say!("{place}: refused: {}", indented(reason)),
            content => {
                let errors = content.violations();
                let plural = if errors.len() == 1 { "error" } else { "errors" };
                say!("{place}: {} {plural}", errors.len());
                for error in errors {
                    say!("  {}", indented(&error.to_string()));
                }
            }
        }
    }

    fn asking(&self, _: RunId, next: &Next<'_>) {
        if !next.wait.is_zero() {
            say!("attempt {}/{}: again in {:?}", next.attempt, self.most, next.wait);
        }
    }
}
