//! The interface between a run and its driver: steps to take, and events that report what came of them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(doc)]
use crate::Run;
use crate::{Call, Completion, Cost, Error, ErrorKind, Fault, Time, Usage, Violation};

/// The number of a call or consultation within its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub(super) u32);

/// A task for the driver.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Nothing before this moment.
    Wait {
        /// When to come back.
        until: Time,
    },
    /// Make this call and report [`Event::Answered`] or [`Event::Failed`]. Stepping again before that gives the same
    /// call: a resumed process makes it again.
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
    /// Ask somebody else about a value, and report [`Event::Consulted`].
    Consult {
        /// To be given back with the event.
        id: CallId,
        /// Whom.
        who: Consult,
        /// The value in question; `null` for a fallback without any draft.
        candidate: Arc<Value>,
    },
    /// The run has ended; see [`Run::finish`].
    Done,
}

/// The party that is asked in a [`Step::Consult`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Consult {
    /// Validators that have to wait for something: is this value acceptable?
    Validators,
    /// The fallback: which value is to be used, now that no model gave one?
    Fallback,
}

/// An event: what a step came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A call brought an answer, whole or stopped.
    Answered {
        /// Of which step.
        id: CallId,
        /// The answer.
        completion: Completion,
        /// Why the driver stopped it before its end, if it did.
        stopped: Option<Violation>,
    },
    /// A call brought no answer.
    Failed {
        /// Of which step.
        id: CallId,
        /// Why.
        fault: Fault,
        /// The tokens that were used up before it failed, as far as that is known or can be estimated from what arrived.
        usage: Usage,
    },
    /// A call was not made, because a shared budget does not allow it.
    Denied {
        /// Of which step.
        id: CallId,
    },
    /// A consultation came back.
    Consulted {
        /// Of which step.
        id: CallId,
        /// The violations of the candidate; warnings do not reject it.
        violations: Vec<Violation>,
        /// The cost of asking.
        spent: Cost,
        /// The fallback's value.
        value: Option<Value>,
    },
    /// The caller wants no answer any more.
    Cancelled,
}

/// An event that does not fit the step that the run is at: late, doubled, or of another run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
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
