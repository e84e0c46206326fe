use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    Ask, Capabilities, Decision, Failure, Fault, Feedback, Reask, RetryContext, RetryPolicy, Sampling,
};

/// How the temperature goes over the attempts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Temperature {
    /// None is sent.
    Own,
    /// The first attempt at the first, and so on; the last one for all that follow.
    Steps(Vec<f64>),
    /// The first attempt as asked, the following ones at most `then`.
    AtMost {
        /// For the first attempt.
        first: f64,
        /// The most for those that follow.
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

/// Whether single values are asked for again instead of the whole document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Patching {
    /// Never.
    Never,
    /// Whenever that can mend the answer; each patch is an attempt.
    Attempt,
    /// Up to so many times within each attempt, at its temperature.
    Within(u32),
}

/// How long to wait after a call that failed and may succeed later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Backoff {
    /// The waits in milliseconds, one for each retry: their number is the number of retries.
    pub waits: Vec<u64>,
    /// The share of each wait that is drawn at random and added, 0 to 1. A server's longer Retry-After wins.
    pub jitter: f64,
}

impl Backoff {
    /// 2, 4 and 8 seconds, without jitter.
    pub fn exponential() -> Self {
        Self { waits: vec![2000, 4000, 8000], jitter: 0.0 }
    }

    /// No retries.
    pub const fn none() -> Self {
        Self { waits: Vec::new(), jitter: 0.0 }
    }

    /// The wait before the `nth` retry (from 1), or `None` if there is no further one.
    fn wait(&self, nth: u32, retry_after: Option<Duration>, draw: f64) -> Option<Duration> {
        let own = *self.waits.get(nth.checked_sub(1)? as usize)?;
        let jitter = (own as f64 * self.jitter.clamp(0.0, 1.0) * draw.clamp(0.0, 1.0)) as u64;
        Some(Duration::from_millis(own.saturating_add(jitter)).max(retry_after.unwrap_or_default()))
    }
}

/// The ready policy: plain data, built step by step. The policies of the applications are values of it in their crates.
///
/// Content and transport have budgets of their own: an answer that is wrong is an attempt, a call that fails is a
/// retry of the same attempt.
///
/// ```
/// use formwork_core::{Backoff, Patching, Policy, Temperature};
///
/// let policy = Policy::new(4)
///     .with_temperature(Temperature::Steps(vec![0.4, 0.2]))
///     .with_patching(Patching::Within(1))
///     .with_backoff(Backoff { waits: vec![500, 1000], jitter: 0.5 });
/// assert_eq!(policy.attempts, 4);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Policy {
    /// How many answers may be asked for, over all targets.
    pub attempts: u32,
    /// How many of them of one target, before the next one is asked (default: an equal share, rounded up).
    pub attempts_per_target: Option<u32>,
    /// How the temperature goes.
    pub temperature: Temperature,
    /// Whether single values are asked for again.
    pub patching: Patching,
    /// How long to wait after a failed call.
    pub backoff: Backoff,
    /// How to say what was wrong.
    pub feedback: Feedback,
    /// Whether to stop asking a target that gave the same wrong answer twice.
    pub stop_on_repeat: bool,
    /// Whether an answer is accepted in which the limit of tokens cut values off; see [`RetryPolicy::accepts_cut`].
    #[serde(default)]
    pub accept_cut: bool,
    /// Whether a model that declined, or whose answer a filter removed, is asked again as after wrong content.
    #[serde(default)]
    pub ask_after_refusal: bool,
}

impl Policy {
    /// So many attempts; patches where they can help, 2/4/8 s between failed calls, no temperature of its own.
    pub fn new(attempts: u32) -> Self {
        Self {
            attempts: attempts.max(1),
            attempts_per_target: None,
            temperature: Temperature::Own,
            patching: Patching::Attempt,
            backoff: Backoff::exponential(),
            feedback: Feedback::standard(),
            stop_on_repeat: true,
            accept_cut: false,
            ask_after_refusal: false,
        }
    }

    /// Sets how many attempts each target gets (default: an equal share, rounded up).
    #[must_use]
    pub const fn with_attempts_per_target(mut self, attempts: u32) -> Self {
        self.attempts_per_target = Some(attempts);
        self
    }

    /// Sets the course of the temperature (default: [`Temperature::Own`]).
    #[must_use]
    pub fn with_temperature(mut self, temperature: Temperature) -> Self {
        self.temperature = temperature;
        self
    }

    /// Sets when only the wrong values are asked for (default: [`Patching::Attempt`]).
    #[must_use]
    pub const fn with_patching(mut self, patching: Patching) -> Self {
        self.patching = patching;
        self
    }

    /// Sets the waits between calls that fail (default: 2, 4 and 8 seconds).
    #[must_use]
    pub fn with_backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Sets how the model is told what was wrong (default: [`Feedback::standard`]).
    #[must_use]
    pub fn with_feedback(mut self, feedback: Feedback) -> Self {
        self.feedback = feedback;
        self
    }

    /// Sets whether a target is left that gave the same wrong answer twice (default: `true`).
    #[must_use]
    pub const fn with_stop_on_repeat(mut self, stop: bool) -> Self {
        self.stop_on_repeat = stop;
        self
    }

    /// Sets whether an answer is accepted in which the limit of tokens cut values off (default: `false`); see
    /// [`RetryPolicy::accepts_cut`].
    #[must_use]
    pub const fn with_accept_cut(mut self, accept: bool) -> Self {
        self.accept_cut = accept;
        self
    }

    /// Sets whether a model that declined, or whose answer a filter removed, is asked again as after wrong content (default:
    /// `false`, the next target is asked).
    #[must_use]
    pub const fn with_ask_after_refusal(mut self, ask: bool) -> Self {
        self.ask_after_refusal = ask;
        self
    }

    /// How many answers may be asked for of the target in use: what is set, else an equal share.
    fn share(&self, targets: usize) -> u32 {
        let targets = u32::try_from(targets.max(1)).unwrap_or(u32::MAX);
        self.attempts_per_target.unwrap_or_else(|| self.attempts.div_ceil(targets))
    }

    fn after_fault(&self, seen: &RetryContext<'_>, fault: &Fault) -> Decision {
        let own = self
            .backoff
            .wait(seen.faults, fault.retry_after, seen.draw)
            .filter(|_| fault.kind.is_transient());
        let own = own.filter(|wait| seen.remaining.is_none_or(|remaining| *wait < remaining));
        match (own, seen.next_in) {
            // Another target that answers sooner is not kept waiting for.
            (Some(wait), None) => Decision::repeat(wait),
            (Some(wait), Some(other)) if wait <= other => Decision::repeat(wait),
            (Some(_), Some(other)) => Decision::repeat_on_next_target(other),
            _ => Self::next_or_give_up(seen),
        }
    }

    /// The same call to the next target. Feedback would not help: the content was not at fault.
    fn next_or_give_up(seen: &RetryContext<'_>) -> Decision {
        match seen.next {
            Some(_) => Decision::repeat_on_next_target(Duration::ZERO),
            None => Decision::GiveUp,
        }
    }

    fn after_content(&self, seen: &RetryContext<'_>) -> Decision {
        let patch = |counts| self.ask(seen, Ask::Patch(seen.patchable.to_vec()), counts, false);
        if let Patching::Within(most) = self.patching
            && !seen.patchable.is_empty()
            && !seen.stalled
            && seen.patches < most
        {
            return patch(false);
        }
        if seen.attempts >= self.attempts {
            return Decision::GiveUp;
        }
        let tired =
            seen.attempts_on_target >= self.share(seen.targets) || self.stop_on_repeat && seen.repeated;
        if tired && (seen.next.is_some() || self.stop_on_repeat && seen.repeated) {
            return match seen.next {
                Some(_) => self.ask(seen, Ask::Whole, true, true),
                None => Decision::GiveUp,
            };
        }
        match self.patching {
            Patching::Attempt if !seen.patchable.is_empty() && !seen.stalled => patch(true),
            _ => self.ask(seen, Ask::Whole, true, false),
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
            feedback: self.feedback.clone(),
            // The same room would cut the same answer at the same place.
            max_tokens: seen
                .max_tokens
                .map(|most| if truncated { doubled(most, seen.token_budget) } else { most }),
        })
    }
}

/// Returns twice a limit of tokens, at most what the target can give, and never less than the limit itself.
fn doubled(most: u32, token_budget: Option<u32>) -> u32 {
    most.saturating_mul(2).min(token_budget.unwrap_or(u32::MAX)).max(most)
}

impl Default for Policy {
    fn default() -> Self {
        Self::new(3)
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

    fn accepts_cut(&self) -> bool {
        self.accept_cut
    }
}
