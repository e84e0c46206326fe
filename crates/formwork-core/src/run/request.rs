//! The next question: what is asked, and how.

use serde::{Deserialize, Serialize};

use crate::{Ask, Feedback, Plan, Reask, Sampling};

/// The next question. Within a target the temperature never rises.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Request {
    asked: Ask,
    /// Whether the answer counts as an attempt.
    counts: bool,
    feedback: Option<Feedback>,
    sampling: Sampling,
    /// The limit of tokens that the plan or the policy sets; the target's own default without one.
    max_tokens: Option<u32>,
    /// The limit of tokens of the last call.
    limit: Option<u32>,
}

impl Request {
    /// The first question of a run.
    pub(super) fn first(plan: &Plan) -> Self {
        let sampling = plan.targets.first().map(|target| plan.policy.first(&target.capabilities));
        Self {
            asked: Ask::Whole,
            counts: true,
            feedback: None,
            sampling: sampling.unwrap_or_default(),
            max_tokens: plan.max_tokens,
            limit: None,
        }
    }

    pub(super) const fn asked(&self) -> &Ask {
        &self.asked
    }

    pub(super) const fn counts(&self) -> bool {
        self.counts
    }

    pub(super) const fn feedback(&self) -> Option<&Feedback> {
        self.feedback.as_ref()
    }

    pub(super) const fn sampling(&self) -> Sampling {
        self.sampling
    }

    pub(super) const fn max_tokens(&self) -> Option<u32> {
        self.max_tokens
    }

    pub(super) const fn limit(&self) -> Option<u32> {
        self.limit
    }

    /// Notes the limit of tokens that a call is sent with.
    pub(super) const fn sent(&mut self, limit: Option<u32>) {
        self.limit = limit;
    }

    /// Notes that a provider has a limit of its own where none was sent: it used so many tokens and was cut.
    pub(super) fn met_limit(&mut self, used: u64) {
        let used = u32::try_from(used).ok().filter(|used| *used > 0);
        self.limit = self.limit.or(used);
    }

    /// Asks for the whole document instead of a part.
    pub(super) fn ask_whole(&mut self) {
        (self.asked, self.counts) = (Ask::Whole, true);
    }

    /// Leaves what was asked of a target behind for the next one, which has nothing to patch.
    pub(super) fn enter_target(&mut self) {
        if matches!(self.asked, Ask::Patch(_)) {
            self.ask_whole();
        }
    }

    /// Takes over what a policy asks for; `can_patch` tells whether there is something to patch.
    pub(super) fn change(&mut self, plan: &Plan, reask: Reask, can_patch: bool) {
        let Reask { ask, counts, next_target, sampling, feedback, max_tokens } = reask;
        let cooler = |new: Option<f64>, old: Option<f64>| match (new, old) {
            (Some(new), Some(old)) if !next_target => Some(new.min(old)),
            (new, _) => new,
        };
        self.sampling =
            Sampling { temperature: cooler(sampling.temperature, self.sampling.temperature), ..sampling };
        self.asked = match ask {
            Ask::Patch(paths) if !next_target && !paths.is_empty() && can_patch => Ask::Patch(paths),
            _ => Ask::Whole,
        };
        self.counts = counts || self.asked == Ask::Whole;
        self.feedback = Some(feedback);
        if next_target {
            self.max_tokens = plan.max_tokens.map(|own| max_tokens.unwrap_or(own).max(own));
        } else if max_tokens != self.limit {
            self.max_tokens = max_tokens;
        }
    }
}
