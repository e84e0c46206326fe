//! Whether a call fits the context of its target.

use super::Run;
use crate::{Call, Plan, Target};

impl Run {
    /// Returns the reason why a call cannot fit the context of the current target; `None` if it may fit.
    pub(super) fn misfit(&self, plan: &Plan, call: &Call) -> Option<String> {
        let target = self.position.target_of(plan)?;
        let (context, least) = (u64::from(target.capabilities.context_tokens?), call.least_input_tokens());
        (least > context).then(|| {
            format!(
                "the input has at least {least} tokens, and the context of `{}` has {context}: shorten or split the input, or \
                 name a model with a larger context",
                target.name
            )
        })
    }

    /// Advances to the first later target whose context may hold the call; returns `false` if there is none.
    pub(super) fn go_to_larger(&mut self, plan: &Plan, call: &Call) -> bool {
        let least = call.least_input_tokens();
        let later = plan.targets.iter().enumerate().skip(self.position.target + 1);
        let may_fit =
            |target: &Target| target.capabilities.context_tokens.is_none_or(|size| u64::from(size) >= least);
        let larger = later.filter(|(_, target)| may_fit(target)).map(|(index, _)| index).min();
        larger.is_some_and(|target| self.advance(plan, target))
    }
}
