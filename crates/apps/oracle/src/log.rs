//! Logs the run of a score to `tracing`, target `formwork_oracle`, without values of the answers.

use std::sync::{Arc, Mutex, PoisonError};

use formwork_core::{
    CallRecord, CallResult, Delta, End, Enforcement, External, Failure, ObservationKind, Violation,
};
use formwork_extract::{Observer, RunId, Started};
use serde_json::Value;
use tracing::{info, warn};

/// The log of one request.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    request_id: Arc<str>,
    max_attempts: u32,
    /// The name that the last answering model reports for itself.
    model: Arc<Mutex<Option<String>>>,
}

impl Log {
    pub(crate) fn new(request_id: &str, max_attempts: u32) -> Self {
        Self { request_id: request_id.into(), max_attempts, model: Arc::default() }
    }

    /// Returns the name that the last answering model reports for itself, if it reports one.
    pub(crate) fn model(&self) -> Option<String> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn rejected(&self, call: &CallRecord, failure: &Failure) {
        let Self { request_id, max_attempts, .. } = self;
        let temperature = call.sampling.temperature;
        let at = temperature.map(|temperature| format!(" at {temperature}")).unwrap_or_default();
        let mut violations = failure.violations().iter().map(in_log).collect::<Vec<_>>().join("; ");
        if failure.left_out() > 0 {
            violations.push_str(&format!("; and {} more", failure.left_out()));
        }
        warn!(
            target: "formwork_oracle",
            request_id = &**request_id,
            target_name = call.target,
            attempt = call.attempt,
            max_attempts,
            temperature,
            class = failure.class(),
            violations,
            total = failure.total(),
            "attempt {}/{max_attempts}{at} rejected", call.attempt
        );
    }

    fn failed(&self, call: &CallRecord, fault: &formwork_core::Fault) {
        let request_id = &*self.request_id;
        match &call.observation {
            Some(observation) => warn!(
                target: "formwork_oracle",
                request_id,
                target_name = call.target,
                attempt = call.attempt,
                dialect = observation.dialect,
                reason = observation.reason,
                "the target refused {}: the next way of asking is taken, the attempt is not used up",
                match call.enforcement {
                    Enforcement::Schema | Enforcement::Tool => "the schema",
                    _ => "to enforce JSON",
                }
            ),
            None => warn!(
                target: "formwork_oracle",
                request_id,
                target_name = call.target,
                attempt = call.attempt,
                reason = fault.to_string(),
                "attempt {}/{} got no answer", call.attempt, self.max_attempts
            ),
        }
    }
}

/// Returns the location, the keyword and the expectation of a violation, without the actual value, which is the user's
/// data.
fn in_log(violation: &Violation) -> String {
    let Violation { path, rule, expected, .. } = violation;
    if expected.is_empty() {
        format!("{path}: {rule}")
    } else {
        format!("{path}: {rule}: expected {expected}")
    }
}

impl Observer for Log {
    fn call_started(&self, _: RunId, started: &Started<'_>) {
        *self.model.lock().unwrap_or_else(PoisonError::into_inner) = None;
        info!(
            target: "formwork_oracle",
            request_id = &*self.request_id,
            target_name = started.target,
            attempt = started.attempt,
            temperature = started.call.sampling.temperature,
            seed = started.call.sampling.seed,
            "asking, attempt {}/{}", started.attempt, self.max_attempts
        );
    }

    fn delta(&self, _: RunId, delta: &Delta) {
        if let Delta::End(End { model: Some(model), .. }) = delta {
            *self.model.lock().unwrap_or_else(PoisonError::into_inner) = Some(model.clone());
        }
    }

    fn call_finished(&self, _: RunId, call: &CallRecord) {
        if !call.skipped.is_empty() {
            info!(
                target: "formwork_oracle",
                request_id = &*self.request_id,
                target_name = call.target,
                attempt = call.attempt,
                "the target does not take {}: left out", call.skipped.join(", ")
            );
        }
        match &call.verdict {
            CallResult::Failed { failure: Failure::Fault(fault) } => self.failed(call, fault),
            CallResult::Failed { failure } => self.rejected(call, failure),
            CallResult::Accepted | CallResult::Cancelled | CallResult::Probe => {}
        }
        if let Some(observation) =
            call.observation.as_ref().filter(|observation| observation.kind == ObservationKind::Ignored)
        {
            warn!(
                target: "formwork_oracle",
                request_id = &*self.request_id,
                target_name = call.target,
                reason = observation.reason,
                "the target ignores the schema"
            );
        }
    }

    fn external_finished(&self, _: RunId, who: External, _: &[Violation], value: Option<&Value>) {
        if who == External::Fallback && value.is_some() {
            warn!(
                target: "formwork_oracle",
                request_id = &*self.request_id,
                "no model gave an acceptable score: the fallback's is used"
            );
        }
    }
}
