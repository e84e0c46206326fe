//! The interface between a run and its driver: steps to take, and events that report what came of them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(doc)]
use crate::Run;
use crate::{Call, Completion, Cost, Error, ErrorKind, Fault, Time, Usage, Violation};

/// The number of a call or external step within its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub(super) u32);

/// A task for the driver.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Step {
    /// Nothing before this moment.
    #[non_exhaustive]
    Wait {
        /// When to come back.
        until: Time,
    },
    /// Make this call and report [`Event::Answered`] or [`Event::Failed`]. Stepping again before that gives the same
    /// call: a resumed process makes it again.
    #[non_exhaustive]
    Call {
        /// To be given back with the event.
        id: CallId,
        /// Which of the plan's targets.
        target: usize,
        /// The call, ready to be sent.
        call: Arc<Call>,
        /// The cost at worst; a driver with a shared budget reserves it, or reports [`Event::Denied`].
        reserve: Cost,
    },
    /// Ask the asynchronous checks about a value, and report [`Event::Checked`].
    #[non_exhaustive]
    Check {
        /// To be given back with the event.
        id: CallId,
        /// The value that satisfies the contract.
        candidate: Arc<Value>,
    },
    /// Ask the fallback for a value, because no model gave an acceptable one, and report [`Event::Supplied`].
    #[non_exhaustive]
    Fallback {
        /// To be given back with the event.
        id: CallId,
        /// The last value that was not accepted; `null` if there was no document.
        candidate: Arc<Value>,
    },
    /// The run has ended; see [`Run::finish`].
    Done,
}

/// A step outside of the run that is no call of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum External {
    /// A [`Step::Check`].
    Checks,
    /// A [`Step::Fallback`].
    Fallback,
}

/// An event: what a step came to.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A call brought an answer, whole or stopped.
    #[non_exhaustive]
    Answered {
        /// Of which step.
        id: CallId,
        /// The answer.
        completion: Completion,
        /// Why the driver stopped it before its end, if it did.
        stopped: Option<Violation>,
    },
    /// A call brought no answer.
    #[non_exhaustive]
    Failed {
        /// Of which step.
        id: CallId,
        /// Why.
        fault: Fault,
        /// The tokens that were used up before it failed, as far as that is known or can be estimated from what arrived.
        usage: Usage,
    },
    /// A call was not made, because a shared budget does not allow it.
    #[non_exhaustive]
    Denied {
        /// Of which step.
        id: CallId,
        /// The rest of the budget, if that is known.
        left: Option<Cost>,
    },
    /// The asynchronous checks are done.
    #[non_exhaustive]
    Checked {
        /// Of which step.
        id: CallId,
        /// The violations of the candidate; warnings do not reject it.
        violations: Vec<Violation>,
        /// The cost of the checks.
        spent: Cost,
    },
    /// The fallback is done.
    #[non_exhaustive]
    Supplied {
        /// Of which step.
        id: CallId,
        /// Its value, if it has one.
        value: Option<Value>,
    },
    /// The caller wants no answer any more.
    Cancelled,
}

impl Event {
    /// The call of a step brought this answer, whole.
    pub const fn answered(id: CallId, completion: Completion) -> Self {
        Self::Answered { id, completion, stopped: None }
    }

    /// The driver stopped the call of a step after this much of the answer, for a reason.
    pub const fn stopped(id: CallId, completion: Completion, reason: Violation) -> Self {
        Self::Answered { id, completion, stopped: Some(reason) }
    }

    /// The call of a step brought no answer, after so many tokens as far as that is known.
    pub const fn failed(id: CallId, fault: Fault, usage: Usage) -> Self {
        Self::Failed { id, fault, usage }
    }

    /// The call of a step was not made, because a shared budget does not allow it; `left` is the rest of that budget, for the
    /// message of the error.
    pub const fn denied(id: CallId, left: Option<Cost>) -> Self {
        Self::Denied { id, left }
    }

    /// The asynchronous checks of a step found these violations, at a cost.
    pub const fn checked(id: CallId, violations: Vec<Violation>, spent: Cost) -> Self {
        Self::Checked { id, violations, spent }
    }

    /// The fallback of a step gave this value, if it had one.
    pub const fn supplied(id: CallId, value: Option<Value>) -> Self {
        Self::Supplied { id, value }
    }
}

/// An event that does not fit the step that the run is at: late, doubled, or of another run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misuse {
    /// The event belongs to no step that is open.
    #[error("the event does not belong to the step that the run is at")]
    NotExpected,
    /// The plan is not the one that the run was started with.
    #[error("the run was started with another plan")]
    OtherPlan,
}

/// Becomes an error of [`ErrorKind::Config`]: only the program that drives the run can mend it.
impl From<Misuse> for Error {
    fn from(misuse: Misuse) -> Self {
        Self::new(ErrorKind::Config, misuse.to_string())
    }
}
