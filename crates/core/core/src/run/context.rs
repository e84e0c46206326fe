//! Whether the input of a run fits the context of a target.

use super::Run;
use crate::{Plan, Target};

/// Returns the maximum number of tokens of a prompt, if it is known, and what it is the limit of.
fn room(target: &Target) -> Option<(u64, &'static str)> {
    let capabilities = &target.capabilities;
    let context = capabilities.context_tokens.map(|tokens| (tokens.into(), "the context"));
    let input = capabilities.input_tokens.map(|tokens| (tokens.into(), "the input limit"));
    context.into_iter().chain(input).min_by_key(|(tokens, _)| *tokens)
}

impl Run {
    /// Returns the reason why the input cannot fit the context of the current target; `None` if it may fit.
    pub(super) fn misfit(&self, plan: &Plan) -> Option<String> {
        let target = self.position.target_of(plan)?;
        let ((most, limit), least) = (room(target)?, self.input.least_tokens());
        (least > most).then(|| {
            format!(
                "the input has at least {least} tokens, and {limit} of `{}` is {most}: shorten or split the input, or \
                 name a model with a larger context",
                target.name
            )
        })
    }

    /// Advances to the first open target whose context may hold the input; returns `false` if there is none.
    pub(super) fn go_to_larger(&mut self, plan: &Plan) -> bool {
        let least = self.input.least_tokens();
        let may_fit = |target: &Target| room(target).is_none_or(|(most, _)| least <= most);
        let larger = self.position.open(plan).find(|target| plan.targets.get(*target).is_some_and(may_fit));
        larger.is_some_and(|target| self.advance(plan, target))
    }
}
