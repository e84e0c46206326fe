//! The log of a shape runner: prints every attempt and every error on standard error, even without `-v`.

use formwork_core::{CallRecord, CallResult, Failure};
use formwork_extract::{Next, Observer, RunId, Started};

use crate::commands::extract::report::indented;
use crate::stderr::say;

/// An observer that prints the result of each attempt. `max` is the maximum number of attempts.
pub(super) struct Attempts {
    pub(super) max: u32,
}

impl Observer for Attempts {
    fn call_started(&self, _: RunId, started: &Started<'_>) {
        say!("attempt {}/{}: asking {}", started.attempt, self.max, started.target);
    }

    fn call_finished(&self, _: RunId, call: &CallRecord) {
        let place = format!("attempt {}/{}", call.attempt, self.max);
        let failure = match &call.verdict {
            CallResult::Accepted => return say!("{place}: all validation passes"),
            CallResult::Cancelled => return say!("{place}: cancelled"),
            CallResult::Probe => return say!("{place}: a probe of the server, or a part of the document"),
            CallResult::Failed { failure } => failure,
        };
        match failure {
            Failure::Fault(fault) => say!("{place}: the call failed: {fault}"),
            Failure::Refused { reason } => say!("{place}: refused: {}", indented(reason)),
            content => {
                let total = content.total();
                say!("{place}: {total} {}", if total == 1 { "error" } else { "errors" });
                for error in content.violations() {
                    say!("  {}", indented(&error.to_string()));
                }
                if content.left_out() > 0 {
                    say!("  and {} more", content.left_out());
                }
            }
        }
    }

    fn asking(&self, _: RunId, next: &Next<'_>) {
        if !next.wait.is_zero() {
            say!("attempt {}/{}: again in {:?}", next.attempt, self.max, next.wait);
        }
    }
}
