use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The thresholds of the evidence about providers, which a retry policy can replace. As a count, 0 means 1, except for
/// `unbounded_every`.
///
/// ```
/// use formwork_core::Thresholds;
///
/// let patient = Thresholds { failed_calls: 6, ..Thresholds::default() };
/// assert_eq!((patient.failed_calls, patient.window_calls), (6, 10));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Thresholds {
    /// The number of different requests with an answer that enforcement excludes, after which the schema is sent without enforcement
    /// (default: 2).
    pub impossible_requests: u32,
    /// The number of the last `window_requests` different requests that ended in prose or with a refusal, after which the
    /// schema is not enforced (default: 5).
    pub prose_requests: u32,
    /// The number of last different requests that `prose_requests` refers to (default: 10).
    pub window_requests: u32,
    /// The number of schemas in such an output mode, after which every schema of the target is sent in one
    /// (default: 3).
    pub ignored_schemas: u32,
    /// The number of calls after which the stronger output mode is tried again (default: 20). Each failed trial multiplies it
    /// by 16.
    pub trial_calls: u32,
    /// The time in seconds after which the stronger output mode is tried again, if that is earlier (default: 600). Each failed
    /// trial doubles it.
    pub trial_seconds: u32,
    /// The maximum time in seconds for which a schema is bounded after an answer ran away (default: 3600).
    pub bounds_seconds: u32,
    /// Every call with this number is made without bounds (default: 10; 0: none).
    pub unbounded_every: u32,
    /// The number of complete answers without bounds that lift the bounds (default: 2).
    pub complete_answers: u32,
    /// The number of failed calls, of the last `window_calls`, after which a target is out of service (default: 3). A connection
    /// that cannot be made needs no second one.
    pub failed_calls: u32,
    /// The number of last calls that `failed_calls` refers to (default: 10).
    pub window_calls: u32,
    /// The time in seconds for which a target is out of service (default: 30). Each failed trial doubles it.
    pub outage_seconds: u32,
    /// The maximum time in seconds for which a target is out of service (default: 600).
    pub max_outage_seconds: u32,
    /// The time in seconds for which a target is skipped that limits the rate of calls and names no delay (default: 5).
    pub busy_seconds: u32,
    /// The time in seconds after which an observation ends that was not made again (default: 3600).
    pub observation_seconds: u32,
}

impl Thresholds {
    /// Returns the time after which an observation ends that was not made again.
    pub(super) const fn lasts(&self) -> Duration {
        seconds(self.observation_seconds)
    }
}

/// Returns a time in seconds as a duration.
pub(super) const fn seconds(seconds: u32) -> Duration {
    Duration::from_secs(seconds as u64)
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            impossible_requests: 2,
            prose_requests: 5,
            window_requests: 10,
            ignored_schemas: 3,
            trial_calls: 20,
            trial_seconds: 600,
            bounds_seconds: 3600,
            unbounded_every: 10,
            complete_answers: 2,
            failed_calls: 3,
            window_calls: 10,
            outage_seconds: 30,
            max_outage_seconds: 600,
            busy_seconds: 5,
            observation_seconds: 3600,
        }
    }
}
