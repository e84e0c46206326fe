//! Retry policies: they decide what is asked after an answer that was not accepted. The trait, and the policy that is ready
//! to use.

mod ready;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Capabilities, Failure, Feedback, JsonPath, Sampling};

pub use ready::{Backoff, Patching, Policy, Temperature};

/// The part of the document that a call asks the model for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ask {
    /// The whole document.
    Whole,
    /// The values at these paths; the rest of the last answer stays byte for byte.
    Patch(Vec<JsonPath>),
}

/// The next step after a call that did not bring an acceptable answer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Decision {
    /// Make the same call again: it failed, its content was not at fault.
    #[non_exhaustive]
    Repeat {
        /// How long to wait first.
        wait: Duration,
        /// Of the next target.
        next_target: bool,
    },
    /// Ask again, because of the content.
    Ask(Reask),
    /// Stop asking: use the fallback, if there is one.
    GiveUp,
}

impl Decision {
    /// Makes the same call of the same target again after a wait.
    pub const fn repeat(wait: Duration) -> Self {
        Self::Repeat { wait, next_target: false }
    }

    /// Makes the same call of the next target after a wait.
    pub const fn repeat_on_next_target(wait: Duration) -> Self {
        Self::Repeat { wait, next_target: true }
    }
}

/// How to ask again after an answer whose content was not accepted.
///
/// ```
/// use formwork_core::{Ask, Decision, JsonPath, Reask, Sampling};
///
/// let reask = Reask::new(Ask::Patch(vec![JsonPath::root().key("total")]), Sampling::default()).within_attempt();
/// assert!(!reask.counts);
/// # let _ = Decision::Ask(reask);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Reask {
    /// The part of the document to ask for.
    pub ask: Ask,
    /// Whether the answer counts as a further attempt; a patch within an attempt does not.
    pub counts: bool,
    /// Whether the next target is asked.
    pub next_target: bool,
    /// How the model is to choose its tokens. A temperature above the last one is lowered to that on the same target.
    pub sampling: Sampling,
    /// How to say what was wrong.
    pub feedback: Feedback,
    /// The most tokens for the answer from now on. The next target has its own default instead, where the plan sets no
    /// limit.
    pub max_tokens: Option<u32>,
}

impl Reask {
    /// A further attempt with the same target, the standard feedback, and no limit of tokens but the target's own.
    pub fn new(ask: Ask, sampling: Sampling) -> Self {
        let feedback = Feedback::standard();
        Self { ask, counts: true, next_target: false, sampling, feedback, max_tokens: None }
    }

    /// Asks within the attempt that failed (default: as a further attempt). A whole answer always counts.
    #[must_use]
    pub const fn within_attempt(mut self) -> Self {
        self.counts = false;
        self
    }

    /// Asks the next target (default: the same).
    #[must_use]
    pub const fn of_next_target(mut self) -> Self {
        self.next_target = true;
        self
    }

    /// Sets how to say what was wrong (default: [`Feedback::standard`]).
    #[must_use]
    pub fn with_feedback(mut self, feedback: Feedback) -> Self {
        self.feedback = feedback;
        self
    }

    /// Sets the most tokens of the answer (default: the target's own limit).
    #[must_use]
    pub const fn with_max_tokens(mut self, tokens: Option<u32>) -> Self {
        self.max_tokens = tokens;
        self
    }
}

/// The state of the run that a policy may look at.
#[derive(Debug)]
#[non_exhaustive]
pub struct RetryContext<'a> {
    /// The failure.
    pub failure: &'a Failure,
    /// The part of the document that was asked for.
    pub asked: &'a Ask,
    /// How it had been asked.
    pub sampling: Sampling,
    /// The most tokens that the answer could have; `None` if no limit was sent.
    pub max_tokens: Option<u32>,
    /// The most tokens that an answer of this target can have, if that is known: its own limit, and what the prompt leaves of
    /// its context.
    pub token_budget: Option<u32>,
    /// Answers so far that count, over all targets.
    pub attempts: u32,
    /// Answers so far that count, of this target.
    pub attempts_on_target: u32,
    /// How many targets the plan has.
    pub targets: usize,
    /// Patches asked for since the last answer that counted.
    pub patches: u32,
    /// Calls that failed in a row, this one included.
    pub faults: u32,
    /// The paths that a patch could mend; empty if only a whole answer can.
    pub patchable: &'a [JsonPath],
    /// The same answer came before.
    pub repeated: bool,
    /// The last answer was a patch that mended nothing.
    pub stalled: bool,
    /// The promises of the target in use.
    pub capabilities: &'a Capabilities,
    /// The promises of the next target, if there is one: of those that are left, the one that is in service first.
    pub next: Option<&'a Capabilities>,
    /// How long it is until the next target is in service, if there is one; zero if it is.
    pub next_in: Option<Duration>,
    /// How long it is until the deadline, if there is one.
    pub remaining: Option<Duration>,
    /// A number from 0 to 1, drawn from the run's seed: for jitter.
    pub draw: f64,
}

impl<'a> RetryContext<'a> {
    /// The state after the first answer of a run with one target, which failed and cannot be patched: for tests of a policy,
    /// which set the rest.
    pub const fn new(failure: &'a Failure, asked: &'a Ask, capabilities: &'a Capabilities) -> Self {
        Self {
            failure,
            asked,
            sampling: Sampling { temperature: None, top_p: None, seed: None },
            max_tokens: None,
            token_budget: None,
            attempts: 1,
            attempts_on_target: 1,
            targets: 1,
            patches: 0,
            faults: 0,
            patchable: &[],
            repeated: false,
            stalled: false,
            capabilities,
            next: None,
            next_in: None,
            remaining: None,
            draw: 0.5,
        }
    }
}

/// Decides what is asked next. Pure: the same [`RetryContext`] gives the same [`Decision`].
///
/// [`Policy`] is the ready one. A policy of your own cannot make a run endless: the run has a bound on its calls.
pub trait RetryPolicy: Send + Sync + fmt::Debug {
    /// How the first answer is asked for.
    fn first(&self, capabilities: &Capabilities) -> Sampling;

    /// Decides what is done after a failure.
    fn decide(&self, seen: &RetryContext<'_>) -> Decision;

    /// Whether it may ask for a patch. Where it never does, nobody has to find out what one could mend, and
    /// [`RetryContext::patchable`] is empty.
    fn patches(&self) -> bool {
        true
    }

    /// Returns whether an answer is accepted in which the limit of tokens cut values off, if it satisfies the contract
    /// otherwise (default: `false`, such an answer is a failed attempt). Its provenance says which values these are. Values
    /// of which the model wrote nothing are accepted in no case.
    fn accepts_cut(&self) -> bool {
        false
    }
}

impl<P: RetryPolicy + ?Sized> RetryPolicy for Arc<P> {
    fn first(&self, capabilities: &Capabilities) -> Sampling {
        (**self).first(capabilities)
    }

    fn decide(&self, seen: &RetryContext<'_>) -> Decision {
        (**self).decide(seen)
    }

    fn patches(&self) -> bool {
        (**self).patches()
    }

    fn accepts_cut(&self) -> bool {
        (**self).accepts_cut()
    }
}
