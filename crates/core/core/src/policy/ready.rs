use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    Ask, Capabilities, Coercion, Connection, Decision, Estimates, Failure, Fault, Feedback, Reask,
    RetryContext, RetryPolicy, Sampling,
};

/// The temperature of each attempt.
///
/// ```
/// use formwork_core::{Policy, Temperature};
///
/// let cooler = Policy::new(3).with_temperature(Temperature::Steps(vec![0.4, 0.2]));
/// assert_eq!(cooler.temperature, Temperature::Steps(vec![0.4, 0.2]));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Temperature {
    /// The provider's own temperature: none is sent.
    Own,
    /// One temperature for each attempt; the last one also for all further attempts.
    Steps(Vec<f64>),
    /// The first attempt at `first`, and further attempts at the lower of `first` and `then`.
    AtMost {
        /// The temperature of the first attempt.
        first: f64,
        /// The maximum temperature of further attempts.
        then: f64,
    },
}

impl Temperature {
    fn of(&self, attempt: u32) -> Option<f64> {
        match self {
            Self::Own => None,
            Self::Steps(steps) => steps.get(attempt as usize).or(steps.last()).copied(),
            Self::AtMost { first, .. } if attempt == 0 => Some(*first),
            Self::AtMost { first, then } => Some(first.min(*then)),
        }
    }
}

/// The policy that decides when to request only the wrong values instead of the whole document.
///
/// ```
/// use formwork_core::{Patching, Policy};
///
/// // Three attempts; within each, wrong values are requested alone up to twice.
/// let policy = Policy::new(3).with_patching(Patching::Within(2));
/// assert_eq!(policy.patching, Patching::Within(2));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Patching {
    /// Never.
    Never,
    /// Whenever a patch can correct the answer; each patch counts as an attempt.
    Attempt,
    /// Up to this number of patches within each attempt, at its temperature.
    Within(u32),
}

/// The number of retries of a call that failed and may succeed later, and the delays before them.
///
/// Its JSON form is `{"retries": 3, "delays_seconds": [2.0, 4.0, 8.0], "jitter": 0.0}`.
///
/// ```
/// use std::time::Duration;
///
/// use formwork_core::{Backoff, Policy};
///
/// // Four retries: after 0.5 to 0.6 s, and three times after 1 to 1.2 s.
/// let delays = vec![Duration::from_millis(500), Duration::from_secs(1)];
/// let policy = Policy::new(3).with_backoff(Backoff { retries: 4, delays, jitter: 0.2 });
/// assert_eq!(policy.backoff.retries, 4);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backoff {
    /// The maximum number of retries of one call.
    pub retries: u32,
    /// The delays before the retries; the last one repeats if there are fewer delays than retries. Without any delay, the
    /// call is repeated at once.
    #[serde(rename = "delays_seconds", with = "seconds")]
    pub delays: Vec<Duration>,
    /// The maximum share of each delay that is added at random, from 0 to 1. A longer `Retry-After` of the server takes
    /// precedence.
    pub jitter: f64,
}

impl Backoff {
    /// Returns three retries after 2, 4 and 8 seconds, without jitter.
    pub fn exponential() -> Self {
        Self { retries: 3, delays: [2, 4, 8].map(Duration::from_secs).to_vec(), jitter: 0.0 }
    }

    /// Returns no retries.
    pub const fn none() -> Self {
        Self { retries: 0, delays: Vec::new(), jitter: 0.0 }
    }

    /// Returns one retry for each delay in seconds, without jitter. A negative delay counts as 0, and one
    /// beyond the range of durations as the longest.
    ///
    /// ```
    /// use formwork_core::Backoff;
    ///
    /// assert_eq!(Backoff::of_seconds(&[2.0, 4.0, 8.0]), Backoff::exponential());
    /// assert_eq!(Backoff::of_seconds(&[]), Backoff::none());
    /// ```
    pub fn of_seconds(delays: &[f64]) -> Self {
        let delay = |seconds: &f64| {
            let nearest = if *seconds > 0.0 { Duration::MAX } else { Duration::ZERO };
            Duration::try_from_secs_f64(*seconds).unwrap_or(nearest)
        };
        let retries = u32::try_from(delays.len()).unwrap_or(u32::MAX);
        Self { retries, delays: delays.iter().map(delay).collect(), jitter: 0.0 }
    }

    /// Returns the delay before the `nth` retry (from 1), or `None` if there is no further retry.
    fn wait(&self, nth: u32, retry_after: Option<Duration>, draw: f64) -> Option<Duration> {
        let index = nth.checked_sub(1).filter(|index| *index < self.retries)?;
        let own = self.delays.get(index as usize).or(self.delays.last()).copied().unwrap_or_default();
        let jitter = own.as_secs_f64() * self.jitter.clamp(0.0, 1.0) * draw.clamp(0.0, 1.0);
        let jitter = Duration::try_from_secs_f64(jitter).unwrap_or_default();
        Some(own.saturating_add(jitter).max(retry_after.unwrap_or_default()))
    }
}

/// The retry settings of one target, which replace those of the policy's [`Backoff`].
///
/// ```
/// use std::time::Duration;
///
/// use formwork_core::{Backoff, Retries};
///
/// let target = Retries { retries: Some(5), delays: None };
/// let file = Retries { retries: Some(0), delays: Some(vec![Duration::from_secs(1)]) };
/// let backoff = target.or(file).apply(Backoff::exponential());
/// assert_eq!((backoff.retries, backoff.delays), (5, vec![Duration::from_secs(1)]));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Retries {
    /// The maximum number of retries of one failed call; 0 turns retries off (default: that of the policy).
    pub retries: Option<u32>,
    /// The delays before the retries; the last one repeats (default: those of the policy).
    pub delays: Option<Vec<Duration>>,
}

impl Retries {
    /// Returns these settings, with those of `other` for absent ones.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self { retries: self.retries.or(other.retries), delays: self.delays.or(other.delays) }
    }

    /// Returns the backoff with these settings.
    #[must_use]
    pub fn apply(&self, backoff: Backoff) -> Backoff {
        Backoff {
            retries: self.retries.unwrap_or(backoff.retries),
            delays: self.delays.clone().unwrap_or(backoff.delays),
            ..backoff
        }
    }
}

/// Durations as numbers of seconds.
mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(delays: &[Duration], out: S) -> Result<S::Ok, S::Error> {
        out.collect_seq(delays.iter().map(Duration::as_secs_f64))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Duration>, D::Error> {
        let seconds = Vec::<f64>::deserialize(from)?;
        seconds.into_iter().map(|one| Duration::try_from_secs_f64(one).map_err(de::Error::custom)).collect()
    }
}

/// The standard retry policy: a value with a builder. The policies of the applications are values of it too.
///
/// Wrong content and failed calls have separate limits: a wrong answer is an attempt, and a failed call is retried within
/// the attempt.
///
/// ```
/// use formwork_core::{Backoff, Patching, Policy, Temperature};
///
/// let policy = Policy::new(4)
///     .with_temperature(Temperature::Steps(vec![0.4, 0.2]))
///     .with_patching(Patching::Within(1))
///     .with_backoff(Backoff { jitter: 0.5, ..Backoff::of_seconds(&[0.5, 1.0]) });
/// assert_eq!(policy.attempts, 4);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
#[must_use]
pub struct Policy {
    /// The maximum number of attempts, over all targets.
    pub attempts: u32,
    /// The maximum number of attempts of one target before the next one is called (default: an equal share, rounded up).
    pub attempts_per_target: Option<u32>,
    /// The temperature of each attempt.
    pub temperature: Temperature,
    /// Decides when only the wrong values are requested.
    pub patching: Patching,
    /// The number of retries of a failed call, and the delays before them.
    pub backoff: Backoff,
    /// The message that asks for a correction.
    pub feedback: Arc<Feedback>,
    /// Whether to leave a target that gave the same wrong answer twice.
    pub stop_on_repeat: bool,
    /// Whether to end with [`NotStated`](crate::ErrorKind::NotStated) if a required member is null or missing in an answer and in the
    /// one after it.
    #[serde(default)]
    pub stop_on_not_stated: bool,
    /// Whether to accept an answer that was cut off; see [`RetryPolicy::accepts_incomplete`].
    #[serde(default, alias = "accept_cut")]
    pub accept_incomplete: bool,
    /// Whether a refusal or a filtered answer is followed by another attempt of the same target, like wrong content.
    #[serde(default)]
    pub ask_after_refusal: bool,
    /// Whether to stop a call once its answer cannot become valid; see [`RetryPolicy::stops`].
    #[serde(default)]
    pub stop: bool,
    /// The treatment of values that do not fit the schema; see [`RetryPolicy::coercion`].
    #[serde(default)]
    pub coercion: Coercion,
    /// Whether a connection that failed is not retried, unless the retries of the target are set.
    #[serde(default)]
    pub leave_unreachable: bool,
}

impl Policy {
    /// Creates a policy with `attempts` attempts (0 counts as 1), patches where they can help, retries after 2, 4 and 8 s, and
    /// the provider's own temperature.
    pub fn new(attempts: u32) -> Self {
        Self {
            attempts: attempts.max(1),
            attempts_per_target: None,
            temperature: Temperature::Own,
            patching: Patching::Attempt,
            backoff: Backoff::exponential(),
            feedback: Arc::new(Feedback::standard()),
            stop_on_repeat: true,
            stop_on_not_stated: false,
            accept_incomplete: false,
            ask_after_refusal: false,
            stop: true,
            coercion: Coercion::Ask,
            leave_unreachable: false,
        }
    }

    crate::setters! {
        /// Sets how many attempts each target gets (default: an equal share, rounded up).
        pub const fn with_attempts_per_target(Some(attempts_per_target): u32);
        /// Sets the temperature of each attempt (default: [`Temperature::Own`]).
        pub fn with_temperature(temperature: Temperature);
        /// Sets when only the wrong values are requested (default: [`Patching::Attempt`]).
        pub const fn with_patching(patching: Patching);
        /// Sets the number of retries of a failed call and their delays (default: 3, after 2, 4 and 8 seconds).
        pub fn with_backoff(backoff: Backoff);
        /// Sets the message that asks for a correction (default: [`Feedback::standard`]).
        pub fn with_feedback(feedback: impl Into<Arc<Feedback>>);
        /// Sets whether to leave a target that gave the same wrong answer twice (default: `true`).
        pub const fn with_stop_on_repeat(stop_on_repeat: bool);
        /// Sets whether to end with [`NotStated`](crate::ErrorKind::NotStated) if a required member is null or missing in an answer and in
        /// the one after it (default: `false`; `true` in [`Policy::default`]): a model that is asked once more invents a value.
        pub const fn with_stop_on_not_stated(stop_on_not_stated: bool);
        /// Sets whether to accept an answer that was cut off (default: `false`, it is a failed attempt); see
        /// [`RetryPolicy::accepts_incomplete`].
        pub const fn with_incomplete(accept_incomplete: bool);
        /// Sets whether a refusal or a filtered answer is followed by another attempt of the same target (default: `false`, the
        /// next target is called).
        pub const fn with_ask_after_refusal(ask_after_refusal: bool);
        /// Sets whether to stop a call once its answer cannot become valid (default: `true`). The applications read each answer to its
        /// end.
        pub const fn with_stop(stop: bool);
        /// Sets what is done with values that do not fit the schema, where the contract sets nothing (default: [`Coercion::Ask`];
        /// [`Coercion::Fix`] in [`Policy::default`]).
        pub const fn with_coercion(coercion: Coercion);
        /// Sets whether a target whose connection failed is left at once, unless its [`retries`](crate::Retries) are set (default: `false`):
        /// for a person who waits, a server on the same machine that is not running does not start.
        pub const fn with_leave_unreachable(leave_unreachable: bool);
    }

    /// Returns the maximum number of attempts of the current target: the configured number, or an equal share.
    fn share(&self, targets: usize) -> u32 {
        let targets = u32::try_from(targets.max(1)).unwrap_or(u32::MAX);
        self.attempts_per_target.unwrap_or_else(|| self.attempts.div_ceil(targets))
    }

    fn after_fault(&self, seen: &RetryContext<'_>, fault: &Fault) -> Decision {
        // The failed call was the last attempt, because it continued an answer.
        if self.resumes() && seen.attempts >= self.attempts {
            return Decision::GiveUp;
        }
        let own = seen
            .retries
            .apply(self.backoff.clone())
            .wait(seen.faults, fault.retry_after, seen.draw)
            .filter(|_| fault.kind.is_transient());
        let is_left = self.leave_unreachable
            && seen.retries.retries.is_none()
            && matches!(fault.connection, Some(Connection::Failed | Connection::NoAddress));
        let own =
            own.filter(|_| !is_left).filter(|wait| seen.remaining.is_none_or(|remaining| *wait < remaining));
        match (own, seen.next_in) {
            (Some(wait), None) => Decision::repeat(wait),
            // One failed call says little about a target that is in service. Else a retry is pointless if another target can
            // answer sooner.
            (Some(wait), Some(other)) if seen.own_in.is_zero() || wait.max(seen.own_in) <= other => {
                Decision::repeat(wait)
            }
            (Some(_), Some(other)) => Decision::repeat_on_next_target(other),
            _ => Self::next_or_give_up(seen),
        }
    }

    /// Repeats the call on the next target. Feedback would not help: the content is not the reason.
    fn next_or_give_up(seen: &RetryContext<'_>) -> Decision {
        match seen.next {
            Some(_) => Decision::repeat_on_next_target(Duration::ZERO),
            None => Decision::GiveUp,
        }
    }

    fn after_content(&self, seen: &RetryContext<'_>) -> Decision {
        let patch = |counts| self.ask(seen, Ask::Patch(seen.patchable.to_vec()), counts, false);
        if self.stop_on_not_stated && !seen.not_stated.is_empty() {
            return Decision::NotStated;
        }
        if let Patching::Within(max) = self.patching
            && !seen.patchable.is_empty()
            && !seen.stalled
            && seen.patches < max
        {
            return patch(false);
        }
        if seen.attempts >= self.attempts {
            return Decision::GiveUp;
        }
        let estimates = seen.estimates;
        let can_patch = self.patching == Patching::Attempt
            && !seen.patchable.is_empty()
            && !seen.stalled
            && !Estimates::is_cheaper(estimates.whole, estimates.patch);
        let is_next_cheaper = self.patching == Patching::Attempt
            && estimates.prefers_next()
            && seen.next_in.is_some_and(|wait| wait.is_zero());
        let tired =
            seen.attempts_on_target >= self.share(seen.targets) || self.stop_on_repeat && seen.repeated;
        if is_next_cheaper || tired && (seen.next.is_some() || self.stop_on_repeat && seen.repeated) {
            return match seen.next {
                Some(_) if can_patch => self.ask(seen, Ask::Patch(seen.patchable.to_vec()), true, true),
                Some(_) => self.ask(seen, Ask::Whole, true, true),
                None => Decision::GiveUp,
            };
        }
        match () {
            () if can_patch => patch(true),
            () => self.ask(seen, Ask::Whole, true, false),
        }
    }

    fn ask(&self, seen: &RetryContext<'_>, ask: Ask, counts: bool, next_target: bool) -> Decision {
        let temperature = if counts { self.temperature.of(seen.attempts) } else { seen.sampling.temperature };
        let truncated = matches!(seen.failure, Failure::Truncated { .. });
        Decision::Ask(Reask {
            ask,
            counts,
            next_target,
            sampling: Sampling { temperature, ..seen.sampling },
            feedback: Arc::clone(&self.feedback),
            // The same limit would cut the same answer at the same place.
            max_tokens: seen
                .max_tokens
                .map(|max| if truncated { doubled(max, seen.token_budget) } else { max }),
        })
    }
}

/// Returns twice a token limit, within the target's token budget but never below the limit itself.
fn doubled(max: u32, token_budget: Option<u32>) -> u32 {
    max.saturating_mul(2).min(token_budget.unwrap_or(u32::MAX)).max(max)
}

/// The policy of extractors: three attempts, an end where the text does not state a required member, and conversions that lose
/// nothing.
impl Default for Policy {
    fn default() -> Self {
        Self::new(3).with_stop_on_not_stated(true).with_coercion(Coercion::Fix)
    }
}

impl RetryPolicy for Policy {
    fn first(&self, _: &Capabilities) -> Sampling {
        Sampling { temperature: self.temperature.of(0), ..Sampling::default() }
    }

    fn decide(&self, seen: &RetryContext<'_>) -> Decision {
        match seen.failure {
            Failure::Fault(fault) => self.after_fault(seen, fault),
            Failure::Refused { .. } if !self.ask_after_refusal => Self::next_or_give_up(seen),
            _ => self.after_content(seen),
        }
    }

    fn patches(&self) -> bool {
        self.patching != Patching::Never
    }

    fn accepts_incomplete(&self) -> bool {
        self.accept_incomplete
    }

    /// An answer that ended early is continued where each patch is an attempt.
    fn resumes(&self) -> bool {
        self.patching == Patching::Attempt
    }

    fn stops(&self) -> bool {
        self.stop
    }

    fn coercion(&self) -> Coercion {
        self.coercion
    }
}
