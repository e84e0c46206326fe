//! Whether the input of a run fits the context of a target.

use super::Run;
use crate::{Plan, Target};

impl Run {
    /// Returns the reason why the input cannot fit the context of the current target; `None` if it may fit.
    pub(super) fn misfit(&self, plan: &Plan) -> Option<String> {
        let target = self.position.target_of(plan)?;
        let (context, least) = (target.capabilities.context_tokens?, self.input.least_tokens());
        (least > context.into()).then(|| {
            format!(
                "the input has at least {least} tokens, and the context of `{}` has {context}: shorten or split the input, or \
                 name a model with a larger context",
                target.name
            )
        })
    }

    /// Advances to the first later target whose context may hold the input; returns `false` if there is none.
    pub(super) fn go_to_larger(&mut self, plan: &Plan) -> bool {
        let least = self.input.least_tokens();
        let may_fit = |target: &Target| {
            target.capabilities.context_tokens.is_none_or(|context| least <= context.into())
        };
        let next = self.position.target + 1;
        let larger = plan.targets.iter().skip(next).position(may_fit);
        larger.is_some_and(|further| self.advance(plan, next + further))
    }
}
