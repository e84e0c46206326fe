//! What a run asks of its driver, and what the driver reports.

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

/// What the driver has to do next.
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
        /// What to ask.
        call: Arc<Call>,
        /// What it costs at worst; a driver with a shared budget reserves it, or reports [`Event::Denied`].
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

/// Who is asked in a [`Step::Consult`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Consult {
    /// Validators that have to wait for something: is this value acceptable?
    Validators,
    /// The fallback: which value is to be used, now that no model gave one?
    Fallback,
}

/// What happened.
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
        /// What was used up before it failed, as far as that is known or can be estimated from what arrived.
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
        /// What is wrong with the candidate; warnings do not reject it.
        violations: Vec<Violation>,
        /// What asking has cost.
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

/// What is driven does not belong together, which nothing but the program can mend: [`ErrorKind::Config`].
impl From<Misuse> for Error {
    fn from(misuse: Misuse) -> Self {
        Self::new(ErrorKind::Config, misuse.to_string())
    }
}
