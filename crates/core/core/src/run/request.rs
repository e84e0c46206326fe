//! The parameters of the next call.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Ask, Feedback, Plan, Reask, Sampling};

/// The parameters of the next call. Within a target the temperature never rises.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Request {
    #[serde(rename = "asked")]
    pub(super) ask: Ask,
    /// Whether the answer counts as an attempt.
    pub(super) counts: bool,
    pub(super) feedback: Option<Arc<Feedback>>,
    pub(super) sampling: Sampling,
    /// The token limit of the plan or the policy; `None` for the target's own default.
    pub(super) max_tokens: Option<u32>,
    /// The token limit of the last call.
    pub(super) limit: Option<u32>,
    /// The beginning of an answer that the next call continues, if it requests the whole document.
    pub(super) prefix: Option<Arc<str>>,
}

impl Request {
    /// Returns the parameters of the first call of a run.
    pub(super) fn first(plan: &Plan) -> Self {
        let sampling = plan.targets.first().map(|target| plan.policy.first(&target.capabilities));
        Self {
            ask: Ask::Whole,
            counts: true,
            feedback: None,
            sampling: sampling.unwrap_or_default(),
            max_tokens: plan.options.max_tokens,
            limit: None,
            prefix: None,
        }
    }

    /// Records the token limit of a call.
    pub(super) const fn sent(&mut self, limit: Option<u32>) {
        self.limit = limit;
    }

    /// Records the provider's own token limit, where none was sent: the answer was cut off after `used` tokens.
    pub(super) fn met_limit(&mut self, used: u64) {
        let used = u32::try_from(used).ok().filter(|used| *used > 0);
        self.limit = self.limit.or(used);
    }

    /// Requests the whole document instead of a part.
    pub(super) fn ask_whole(&mut self) {
        (self.ask, self.counts, self.prefix) = (Ask::Whole, true, None);
    }

    /// Applies the decision of a policy. `can_patch` says whether there is a draft to patch.
    pub(super) fn change(&mut self, plan: &Plan, reask: Reask, can_patch: bool) {
        let Reask { ask, counts, next_target, sampling, feedback, max_tokens } = reask;
        let cooler = |new: Option<f64>, old: Option<f64>| match (new, old) {
            (Some(new), Some(old)) if !next_target => Some(new.min(old)),
            (new, _) => new,
        };
        self.sampling =
            Sampling { temperature: cooler(sampling.temperature, self.sampling.temperature), ..sampling };
        self.prefix = None;
        self.ask = match ask {
            Ask::Patch(paths) if !paths.is_empty() && can_patch => Ask::Patch(paths),
            _ => Ask::Whole,
        };
        self.counts = counts || self.ask == Ask::Whole;
        self.feedback = Some(feedback);
        if next_target {
            self.max_tokens = plan.options.max_tokens.map(|own| max_tokens.unwrap_or(own).max(own));
        } else if max_tokens != self.limit {
            self.max_tokens = max_tokens;
        }
    }
}
