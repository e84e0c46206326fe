//! Retry policies: the [`RetryPolicy`] trait, and [`Policy`], the implementation to start with.

mod ready;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Capabilities, Coercion, Cost, Failure, Feedback, JsonPath, Sampling, Thresholds};

pub use ready::{Backoff, Patching, Policy, Retries, Temperature};

/// The part of the document that a call requests from the model.
///
/// ```
/// use formwork_core::Ask;
///
/// let patch = Ask::Patch(vec!["$.total".parse()?, "$.lines[0].price".parse()?]);
/// assert_ne!(patch, Ask::Whole);
/// # Ok::<(), formwork_core::PathError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ask {
    /// The whole document.
    Whole,
    /// The values at these paths; the rest of the last answer is kept byte for byte. A path one past the last item of a list requests
    /// all further items of the list.
    Patch(Vec<JsonPath>),
}

/// The decision of a [`RetryPolicy`] after a call that did not bring an acceptable answer.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Decision {
    /// Repeat the same call, because the call failed and its content is not the reason.
    #[non_exhaustive]
    Repeat {
        /// The delay before the call.
        wait: Duration,
        /// Whether to call the next target instead of the same one.
        next_target: bool,
    },
    /// Request another answer, because the content was not accepted.
    Ask(Reask),
    /// Stop, and use the fallback if there is one.
    GiveUp,
    /// Stop, because the text does not state [required members](RetryContext::not_stated): the error is
    /// [`NotStated`](crate::ErrorKind::NotStated).
    NotStated,
}

impl Decision {
    /// Repeats the call on the same target after a delay.
    ///
    /// ```
    /// use std::time::Duration;
    /// use formwork_core::Decision;
    ///
    /// let wait = Duration::from_secs(2);
    /// assert!(matches!(Decision::repeat(wait), Decision::Repeat { next_target: false, .. }));
    /// ```
    pub const fn repeat(wait: Duration) -> Self {
        Self::Repeat { wait, next_target: false }
    }

    /// Repeats the call on the next target after a delay.
    pub const fn repeat_on_next_target(wait: Duration) -> Self {
        Self::Repeat { wait, next_target: true }
    }

    /// Returns whether the next call goes to the next target; `None` if there is no next call.
    pub(crate) const fn next_target(&self) -> Option<bool> {
        match self {
            Self::Repeat { next_target, .. } | Self::Ask(Reask { next_target, .. }) => Some(*next_target),
            Self::NotStated | Self::GiveUp => None,
        }
    }
}

/// The parameters of the next call after an answer whose content was not accepted.
///
/// ```
/// use formwork_core::{Ask, JsonPath, Reask, Sampling};
///
/// let total = Ask::Patch(vec![JsonPath::root().key("total")]);
/// let reask = Reask::new(total, Sampling::default()).within_attempt();
/// assert!(!reask.counts && !reask.next_target);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[must_use]
pub struct Reask {
    /// The part of the document to request.
    pub ask: Ask,
    /// Whether the answer counts as a further attempt; a patch within an attempt does not.
    pub counts: bool,
    /// Whether to call the next target.
    pub next_target: bool,
    /// The sampling parameters. On the same target, a temperature above that of the last call is lowered to it.
    pub sampling: Sampling,
    /// The message that asks for the correction.
    pub feedback: Arc<Feedback>,
    /// The maximum number of tokens of the answers from now on. The next target has its own default instead if the plan
    /// sets no limit.
    pub max_tokens: Option<u32>,
}

impl Reask {
    /// Requests a further attempt of the same target, with the standard feedback and the target's own token limit.
    pub fn new(ask: Ask, sampling: Sampling) -> Self {
        let feedback = Arc::new(Feedback::standard());
        Self { ask, counts: true, next_target: false, sampling, feedback, max_tokens: None }
    }

    crate::setters! {
        /// Makes the call part of the failed attempt (default: a further attempt). A whole answer always counts as an attempt.
        pub const fn within_attempt(counts = false);
        /// Calls the next target (default: the same target).
        pub const fn of_next_target(next_target = true);
        /// Sets the message that asks for the correction (default: [`Feedback::standard`]).
        pub fn with_feedback(feedback: impl Into<Arc<Feedback>>);
        /// Sets the maximum number of tokens of the answer (default: the target's own limit).
        pub const fn with_max_tokens(max_tokens: Option<u32>);
    }
}

/// The estimated costs of the possible next steps, from the lengths of their messages and of the expected answers at four bytes a
/// token, and the prices of the targets.
///
/// ```
/// use formwork_core::{Cost, Estimates};
///
/// let cost = |tokens| Some(Cost { tokens, micro_usd: None });
/// let estimates = Estimates { patch: cost(900), whole: cost(2_000), next: None };
/// assert_eq!(estimates.to_string(), "patch 900 tokens, whole answer 2000 tokens");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Estimates {
    /// Requesting only the values of [`RetryContext::patchable`] from the current target; `None` if that is not possible.
    pub patch: Option<Cost>,
    /// Requesting the whole document from the current target.
    pub whole: Option<Cost>,
    /// The cheaper of both from the next target; `None` without one.
    pub next: Option<Cost>,
}

impl Estimates {
    /// Returns whether one step costs less than three quarters of another one: a smaller difference is within the error of the
    /// estimate. Money decides if both prices are known, otherwise tokens do.
    pub(crate) const fn is_cheaper(one: Option<Cost>, other: Option<Cost>) -> bool {
        let (Some(one), Some(other)) = (one, other) else { return false };
        let (one, other) = match (one.micro_usd, other.micro_usd) {
            (Some(one), Some(other)) => (one, other),
            _ => (one.tokens, other.tokens),
        };
        one.saturating_mul(4) < other.saturating_mul(3)
    }

    /// Returns whether the next target is cheaper than each step of the current one. Both prices have to be known, because tokens of
    /// different models cannot be compared.
    pub(crate) fn prefers_next(&self) -> bool {
        let is_priced = |cost: Option<Cost>| cost.is_none_or(|cost| cost.micro_usd.is_some());
        let is_below = |cost: Option<Cost>| cost.is_none() || Self::is_cheaper(self.next, cost);
        let own = [self.patch, self.whole];
        self.next.is_some()
            && is_priced(self.next)
            && own.iter().all(|cost| is_priced(*cost) && is_below(*cost))
    }
}

impl fmt::Display for Estimates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps = [("patch", self.patch), ("whole answer", self.whole), ("next target", self.next)];
        let known = steps.into_iter().filter_map(|(name, cost)| Some((name, cost?)));
        for (nth, (name, cost)) in known.enumerate() {
            write!(f, "{}{name} {} tokens", if nth == 0 { "" } else { ", " }, cost.tokens)?;
            if let Some(micro) = cost.micro_usd {
                write!(f, " for ${}.{:06}", micro / 1_000_000, micro % 1_000_000)?;
            }
        }
        Ok(())
    }
}

/// The state of a run that a [`RetryPolicy`] decides by.
#[derive(Debug)]
#[non_exhaustive]
pub struct RetryContext<'a> {
    /// The failure of the last call.
    pub failure: &'a Failure,
    /// The part of the document that the last call requested.
    pub ask: &'a Ask,
    /// The sampling parameters of the last call.
    pub sampling: Sampling,
    /// The maximum number of tokens of the last answer; `None` if no limit was sent.
    pub max_tokens: Option<u32>,
    /// The maximum number of tokens that an answer of this target can have: the target's own limit, and the rest of its
    /// context after the prompt. `None` if neither is known.
    pub token_budget: Option<u32>,
    /// The number of attempts so far, over all targets.
    pub attempts: u32,
    /// The number of attempts so far of this target.
    pub attempts_on_target: u32,
    /// The number of targets of the plan.
    pub targets: usize,
    /// The number of patches since the attempt began.
    pub patches: u32,
    /// The number of consecutive failed calls, this one included.
    pub faults: u32,
    /// The paths that a patch could correct; empty if only a whole answer can.
    pub patchable: &'a [JsonPath],
    /// The estimated costs of the possible next steps.
    pub estimates: Estimates,
    /// Whether the same answer came before.
    pub repeated: bool,
    /// Whether the last answer was a patch that corrected nothing.
    pub stalled: bool,
    /// The required members that were null or missing in the last two answers that were judged: the text probably does not state
    /// them, and another request would make the model invent them.
    pub not_stated: &'a [JsonPath],
    /// The capabilities of the current target.
    pub capabilities: &'a Capabilities,
    /// The retry settings of the current target, which have precedence over those of a policy.
    pub retries: &'a Retries,
    /// The time until the current target is in service; zero if it is.
    pub own_in: Duration,
    /// The capabilities of the next target, if there is one: of the remaining targets, the one that is in service first.
    pub next: Option<&'a Capabilities>,
    /// The time until the next target is in service, if there is one; zero if it is.
    pub next_in: Option<Duration>,
    /// The time until the deadline, if there is one.
    pub remaining: Option<Duration>,
    /// A number from 0 to 1, drawn from the run's seed, for jitter.
    pub draw: f64,
}

impl<'a> RetryContext<'a> {
    /// Returns the state after the first answer of a run with one target, which failed and cannot be patched. A test of a
    /// policy sets the other fields.
    ///
    /// ```
    /// use formwork_core::{Ask, Capabilities, Failure, Policy, RetryContext, RetryPolicy};
    ///
    /// let failure = Failure::NotJson { violations: vec![] };
    /// let capabilities = Capabilities::default();
    /// let mut context = RetryContext::new(&failure, &Ask::Whole, &capabilities);
    /// context.attempts = 3;
    /// assert_eq!(Policy::new(3).decide(&context), formwork_core::Decision::GiveUp);
    /// ```
    pub const fn new(failure: &'a Failure, ask: &'a Ask, capabilities: &'a Capabilities) -> Self {
        Self {
            failure,
            ask,
            sampling: Sampling { temperature: None, top_p: None, seed: None, frequency_penalty: None },
            max_tokens: None,
            token_budget: None,
            attempts: 1,
            attempts_on_target: 1,
            targets: 1,
            patches: 0,
            faults: 0,
            patchable: &[],
            estimates: Estimates { patch: None, whole: None, next: None },
            repeated: false,
            stalled: false,
            not_stated: &[],
            capabilities,
            retries: NO_RETRIES,
            own_in: Duration::ZERO,
            next: None,
            next_in: None,
            remaining: None,
            draw: 0.5,
        }
    }
}

const NO_RETRIES: &Retries = &Retries { retries: None, delays: None };

/// Decides the next call after an answer that was not accepted. Pure: the same [`RetryContext`] gives the same
/// [`Decision`].
///
/// [`Policy`] is the implementation to start with. A policy cannot make a run endless: a run makes at most
/// [`MAX_CALLS`](crate::MAX_CALLS) calls.
///
/// ```
/// use formwork_core::{Ask, Capabilities, Decision, Reask, RetryContext, RetryPolicy, Sampling};
///
/// /// Requests one second answer, and only of servers that support a seed.
/// #[derive(Debug)]
/// struct OnceMore;
///
/// impl RetryPolicy for OnceMore {
///     fn first(&self, _: &Capabilities) -> Sampling {
///         Sampling::default().with_seed(1)
///     }
///     fn decide(&self, seen: &RetryContext<'_>) -> Decision {
///         if seen.attempts > 1 || !seen.capabilities.seed {
///             return Decision::GiveUp;
///         }
///         Decision::Ask(Reask::new(Ask::Whole, seen.sampling.with_seed(2)))
///     }
/// }
/// ```
pub trait RetryPolicy: Send + Sync + fmt::Debug {
    /// Returns the sampling parameters of the first call.
    fn first(&self, capabilities: &Capabilities) -> Sampling;

    /// Returns the decision after a failure.
    fn decide(&self, seen: &RetryContext<'_>) -> Decision;

    /// Returns the thresholds by which [`Health`](crate::Health) decides about the targets of a plan with this policy (default: the
    /// configured ones).
    fn thresholds(&self, configured: Thresholds) -> Thresholds {
        configured
    }

    /// Returns whether the policy may request patches (default: `true`). If it never does, the run does not compute which
    /// paths a patch could correct, and [`RetryContext::patchable`] is empty.
    fn patches(&self) -> bool {
        true
    }

    /// Returns whether an answer is accepted that was cut off and finished by the reader or the provider, if it satisfies the
    /// contract (default: `false`, the answer is a failed attempt). Its provenance lists the incomplete values, and the outcome has a
    /// [warning](crate::WarningKind::Incomplete) for each. An answer with values of which the model wrote nothing is never accepted.
    fn accepts_incomplete(&self) -> bool {
        false
    }

    /// Returns whether the run may request only the rest of an answer that ended before its document did, or that was stopped (default:
    /// `false`, the whole is requested again). Then [`RetryContext::patchable`] has the paths of the missing values, and
    /// [`Ask::Patch`] of them continues the answer.
    fn resumes(&self) -> bool {
        false
    }

    /// Returns whether a call is stopped once its answer cannot become valid (default: `false`); see
    /// [`Follower`](crate::Follower). The answer is then a failed attempt.
    fn stops(&self) -> bool {
        false
    }

    /// Returns what is done with values that do not fit the schema, where the contract sets nothing (default: [`Coercion::Ask`]).
    fn coercion(&self) -> Coercion {
        Coercion::Ask
    }
}

impl<P: RetryPolicy + ?Sized> RetryPolicy for Arc<P> {
    fn first(&self, capabilities: &Capabilities) -> Sampling {
        (**self).first(capabilities)
    }

    fn decide(&self, seen: &RetryContext<'_>) -> Decision {
        (**self).decide(seen)
    }

    fn thresholds(&self, configured: Thresholds) -> Thresholds {
        (**self).thresholds(configured)
    }

    fn patches(&self) -> bool {
        (**self).patches()
    }

    fn accepts_incomplete(&self) -> bool {
        (**self).accepts_incomplete()
    }

    fn resumes(&self) -> bool {
        (**self).resumes()
    }

    fn stops(&self) -> bool {
        (**self).stops()
    }

    fn coercion(&self) -> Coercion {
        (**self).coercion()
    }
}
