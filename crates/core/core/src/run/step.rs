//! The interface between a run and its driver: steps for the driver, and events that report their results.

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

/// The next task of a driver.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Step {
    /// Wait: there is nothing to do before this time.
    #[non_exhaustive]
    Wait {
        /// The time of the next step.
        until: Time,
    },
    /// Make this call and report [`Event::Answered`] or [`Event::Failed`]. Until then, further steps return the same call,
    /// so that a resumed process repeats it.
    #[non_exhaustive]
    Call {
        /// The number of the step, which the event has to repeat.
        id: CallId,
        /// The index of the target in the plan.
        target: usize,
        /// The call, ready to be sent.
        call: Arc<Call>,
        /// The maximum cost of the call. A driver with a shared budget reserves it, or reports [`Event::Denied`].
        reserve: Cost,
    },
    /// Run the asynchronous checks on a value and report [`Event::Checked`].
    #[non_exhaustive]
    Check {
        /// The number of the step, which the event has to repeat.
        id: CallId,
        /// The value that satisfies the contract.
        candidate: Arc<Value>,
    },
    /// Request a value from the fallback, because no model gave an acceptable one, and report [`Event::Supplied`].
    #[non_exhaustive]
    Fallback {
        /// The number of the step, which the event has to repeat.
        id: CallId,
        /// The last value that was not accepted; `null` if there was no document.
        candidate: Arc<Value>,
    },
    /// The run has ended; see [`Run::finish`].
    Done,
}

/// A step outside of the run other than a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum External {
    /// A [`Step::Check`].
    Checks,
    /// A [`Step::Fallback`].
    Fallback,
}

/// The result of a [`Step`].
///
/// ```
/// use formwork_core::{CallId, Completion, Event, Fault, Usage};
///
/// fn report(id: CallId, result: Result<Completion, Fault>) -> Event {
///     match result {
///         Ok(completion) => Event::answered(id, completion),
///         Err(fault) => Event::failed(id, fault, Usage::default()),
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A call brought an answer, complete or stopped.
    #[non_exhaustive]
    Answered {
        /// The number of the step.
        id: CallId,
        /// The answer.
        completion: Completion,
        /// The reason why the driver stopped the answer, if it did.
        stopped: Option<Box<Violation>>,
    },
    /// A call failed.
    #[non_exhaustive]
    Failed {
        /// The number of the step.
        id: CallId,
        /// The reason.
        fault: Fault,
        /// The tokens of the failed call, as far as they are known or can be estimated from the text that arrived.
        usage: Usage,
        /// The part of the answer that arrived before the fault; `None` if the answer did not begin.
        received: Option<Box<Completion>>,
    },
    /// A call was not made, because a shared budget does not allow it.
    #[non_exhaustive]
    Denied {
        /// The number of the step.
        id: CallId,
        /// The rest of the budget, if that is known.
        left: Option<Cost>,
    },
    /// A call was not made, because the caller cancelled while the call waited for a shared budget. The next step decides again.
    #[non_exhaustive]
    Deferred {
        /// The number of the step.
        id: CallId,
    },
    /// The asynchronous checks are complete.
    #[non_exhaustive]
    Checked {
        /// The number of the step.
        id: CallId,
        /// The violations of the candidate; warnings do not reject it.
        violations: Vec<Violation>,
        /// The cost of the checks.
        spent: Cost,
    },
    /// The fallback is complete.
    #[non_exhaustive]
    Supplied {
        /// The number of the step.
        id: CallId,
        /// The value of the fallback, if it has one.
        value: Option<Value>,
    },
    /// The caller cancelled the request.
    Cancelled,
    /// The caller cancelled the request in the middle of an answer.
    #[non_exhaustive]
    Dropped {
        /// The number of the step.
        id: CallId,
        /// The part of the answer that arrived.
        received: Box<Completion>,
    },
}

impl Event {
    /// Reports a complete answer.
    pub const fn answered(id: CallId, completion: Completion) -> Self {
        Self::Answered { id, completion, stopped: None }
    }

    /// Reports an answer that the driver stopped, with the reason.
    pub fn stopped(id: CallId, completion: Completion, reason: Violation) -> Self {
        Self::Answered { id, completion, stopped: Some(Box::new(reason)) }
    }

    /// Reports a failed call, with the tokens that it used as far as they are known.
    pub const fn failed(id: CallId, fault: Fault, usage: Usage) -> Self {
        Self::Failed { id, fault, usage, received: None }
    }

    /// Reports an answer that began and did not end, with the part that arrived. The run estimates its tokens. An answer that
    /// the deadline cut off is judged like one at the token limit.
    pub fn broken_off(id: CallId, received: Completion, fault: Fault) -> Self {
        Self::Failed { id, fault, usage: Usage::default(), received: Some(Box::new(received)) }
    }

    /// Reports that the caller cancelled the request in the middle of an answer, of which this part arrived. The run estimates its tokens.
    pub fn dropped(id: CallId, received: Completion) -> Self {
        Self::Dropped { id, received: Box::new(received) }
    }

    /// Reports that a call was not made, because a shared budget does not allow it. `left` is the rest of that budget, for the
    /// message of the error. After the deadline, the run ends because of the deadline.
    pub const fn denied(id: CallId, left: Option<Cost>) -> Self {
        Self::Denied { id, left }
    }

    /// Reports that a call was not made, so that the next step decides again.
    pub const fn deferred(id: CallId) -> Self {
        Self::Deferred { id }
    }

    /// Reports the violations that the asynchronous checks found, and the cost of the checks.
    pub const fn checked(id: CallId, violations: Vec<Violation>, spent: Cost) -> Self {
        Self::Checked { id, violations, spent }
    }

    /// Reports the value of the fallback, if it has one.
    pub const fn supplied(id: CallId, value: Option<Value>) -> Self {
        Self::Supplied { id, value }
    }

    /// Returns the number of the step whose result this is; `None` for a cancellation.
    pub const fn id(&self) -> Option<CallId> {
        match self {
            Self::Answered { id, .. }
            | Self::Failed { id, .. }
            | Self::Denied { id, .. }
            | Self::Deferred { id }
            | Self::Checked { id, .. }
            | Self::Supplied { id, .. }
            | Self::Dropped { id, .. } => Some(*id),
            Self::Cancelled => None,
        }
    }
}

/// A mistake of the driver: an event that is late, repeated or of another run, or a wrong plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misuse {
    /// The event belongs to no open step.
    #[error("the event does not belong to the step that the run is at")]
    NotExpected,
    /// The plan is not the plan of this run.
    #[error("the run was started with another plan")]
    OtherPlan,
}

/// Becomes an error of [`ErrorKind::Config`], because only a change of the driver can correct it.
impl From<Misuse> for Error {
    fn from(misuse: Misuse) -> Self {
        Self::new(ErrorKind::Config, misuse.to_string())
    }
}
