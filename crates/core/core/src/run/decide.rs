//! Decides the next call: the first one, and the one after an answer that was not accepted or a call that failed.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::end::over_budget;
use super::{DEADLINE_PASSED, MAX_CALLS, Run, State};
use crate::absence::is_unstated;
use crate::{
    Ask, Call, Cost, Decision, ErrorKind, Failure, FaultKind, JsonPath, Plan, RetryContext, Time, Usage,
};

/// What is known about the last answer besides its failure.
#[derive(Clone, Copy)]
struct Last<'a> {
    /// Whether the same answer came before.
    repeated: bool,
    /// Whether it was a patch that corrected nothing.
    stalled: bool,
    /// The required members that this answer and the one before do not state.
    not_stated: &'a [JsonPath],
}

/// The number of tokens that is reserved for an answer without a limit. Every call under a budget has a limit.
const UNLIMITED: u32 = 128_000;

impl Run {
    /// Begins the next call, unless a limit forbids it.
    pub(super) fn begin(&mut self, plan: &Plan, now: Time) {
        if self.deadline(plan).is_some_and(|deadline| now >= deadline) {
            return self.give_up(plan, ErrorKind::Deadline, DEADLINE_PASSED);
        }
        if self.ids >= MAX_CALLS {
            let message = format!("no acceptable answer in {MAX_CALLS} calls");
            return self.give_up(plan, ErrorKind::Rejected, &message);
        }
        if let Some(message) = self.misfit(plan) {
            return match self.go_to_larger(plan) {
                true => self.begin(plan, now),
                // A later target that is too small does not explain the failure of those before it.
                false if self.failure().is_some() => self.give_up_on_failure(plan, false),
                false => self.give_up(plan, ErrorKind::Config, &message),
            };
        }
        let (call, skipped) = match self.composed(plan) {
            Ok(composed) => composed,
            Err(message) => return self.give_up(plan, ErrorKind::Config, &message),
        };
        if let Some(budget) = plan.options.budget {
            let spent = self.counters.spent;
            let fits = |cost: Cost| spent.plus(cost).fits(budget);
            let worst = self.reserve(plan, &call);
            if !fits(worst) {
                return match self.go_to_cheaper(plan, fits) {
                    true => self.begin(plan, now),
                    false => {
                        let left = budget.minus(spent);
                        self.give_up(plan, ErrorKind::Budget, &over_budget(worst, Some(left)));
                    }
                };
            }
        }
        self.request.sent(call.max_tokens);
        if self.request.ask == Ask::Whole {
            self.position.has_bounds = self.position.bounded && !call.lowered.bounds.is_empty();
        }
        let id = self.next_id();
        self.state = State::Calling { id, call: Arc::new(call), skipped, since: now };
    }

    fn composed(&mut self, plan: &Plan) -> Result<(Call, Vec<String>), String> {
        self.compose(plan).or_else(|message| match &self.request.ask {
            // A custom policy chose values that cannot be requested alone.
            Ask::Patch(_) => {
                self.request.ask_whole();
                self.compose(plan)
            }
            Ask::Whole => Err(message),
        })
    }

    /// Advances to the first later target for which `may_cost` accepts the maximum cost of the next call; returns `false`
    /// if there is none.
    pub(super) fn go_to_cheaper(&mut self, plan: &Plan, may_cost: impl Fn(Cost) -> bool) -> bool {
        for target in self.position.target + 1..plan.targets.len() {
            let mut there = self.clone();
            if !there.advance(plan, target) {
                continue;
            }
            if there.composed(plan).is_ok_and(|(call, _)| may_cost(there.reserve(plan, &call))) {
                return self.advance(plan, target);
            }
        }
        false
    }

    /// Returns the maximum cost of a call: a token has at least one byte, and reasoning counts as part of the answer.
    pub(super) fn reserve(&self, plan: &Plan, call: &Call) -> Cost {
        let Some(target) = self.position.target_of(plan) else { return Cost::default() };
        let answer = call.max_tokens.or(target.capabilities.output_tokens).unwrap_or(UNLIMITED);
        let mode = self.position.mode_of(plan).filter(|mode| Arc::ptr_eq(&mode.whole, &call.lowered));
        let input_tokens = mode
            .map_or_else(|| call.most_input_tokens(), |mode| call.most_input_tokens_with(mode.schema_bytes));
        target.cost(Usage::new(input_tokens, u64::from(answer)))
    }

    /// Applies the policy's decision, within the bounds of the run.
    pub(super) fn decide(&mut self, plan: &Plan, now: Time, repeated: bool, stalled: bool) {
        let draw = self.draw();
        let remaining = self.deadline(plan).map(|deadline| deadline.since(now));
        if remaining.is_some_and(|left| left.is_zero()) {
            // The deadline is the reason for the end here, not the last failure.
            return self.give_up(plan, ErrorKind::Deadline, DEADLINE_PASSED);
        }
        let next = self.position.next(plan, now);
        let not_stated = self.not_stated(plan);
        let last = Last { repeated, stalled, not_stated: &not_stated };
        let decision = self.advice(plan, now, next, last, draw).unwrap_or(Decision::GiveUp);
        let goes_on = match &decision {
            Decision::Repeat { next_target, .. } => *next_target,
            Decision::Ask(reask) => reask.next_target,
            Decision::NotStated if !not_stated.is_empty() => return self.give_up_unstated(plan, not_stated),
            Decision::NotStated | Decision::GiveUp => return self.give_up_on_failure(plan, repeated),
        };
        if goes_on && !next.is_some_and(|(target, _)| self.advance(plan, target)) {
            return self.give_up_on_failure(plan, repeated);
        }
        match decision {
            Decision::NotStated | Decision::GiveUp => {}
            Decision::Repeat { wait, .. } => self.wait(plan, now, wait),
            Decision::Ask(reask) => {
                self.request.change(plan, reask, self.drafts.current().is_some());
                self.counters.clear_faults();
                self.state = State::Ready;
            }
        }
    }

    /// Returns the policy's decision about the last call; `None` if it did not fail. `next` is the next target and the time
    /// until it is in service.
    fn advice(
        &self,
        plan: &Plan,
        now: Time,
        next: Option<(usize, Duration)>,
        last: Last<'_>,
        draw: f64,
    ) -> Option<Decision> {
        let (failure, target) = (self.failure()?, self.position.target_of(plan)?);
        let remaining = self.deadline(plan).map(|deadline| deadline.since(now));
        let ask = &self.request.ask;
        let about_values = matches!(failure, Failure::Invalid { .. }) || matches!(ask, Ask::Patch(_));
        let mut patchable =
            if about_values && plan.policy.patches() { self.patchable(plan) } else { Vec::new() };
        if !patchable.is_empty() && !self.can_patch(plan, &patchable) {
            patchable.clear();
        }
        Some(plan.policy.decide(&RetryContext {
            failure,
            ask,
            sampling: self.request.sampling,
            max_tokens: self.request.limit,
            token_budget: self.token_budget(target),
            attempts: self.counters.attempts,
            attempts_on_target: self.counters.on_target,
            targets: plan.targets.len(),
            patches: self.counters.patches,
            faults: self.counters.faults,
            patchable: &patchable,
            repeated: last.repeated,
            stalled: last.stalled,
            not_stated: last.not_stated,
            capabilities: &target.capabilities,
            own_in: self.position.wait(now).unwrap_or_default(),
            next: next.and_then(|(target, _)| plan.targets.get(target)).map(|next| &next.capabilities),
            next_in: next.map(|(_, wait)| wait),
            remaining,
            draw,
        }))
    }

    /// Returns the failure of the last call, if it failed.
    pub(super) fn failure(&self) -> Option<&Failure> {
        self.ledger.last()?.verdict.failure()
    }

    /// Returns the required members that are null or missing in the last two answers that were judged. An object without any member
    /// that the schema names says nothing about the text: it has another form.
    fn not_stated(&self, plan: &Plan) -> Vec<JsonPath> {
        let is_last = matches!(self.failure(), Some(Failure::Invalid { .. }));
        let Some(draft) = self.drafts.current().filter(|_| is_last) else { return Vec::new() };
        let mut judged = self.ledger.iter().rev().filter_map(|call| match call.verdict.failure() {
            Some(Failure::Invalid { violations }) => Some(violations),
            _ => None,
        });
        let (Some(last), Some(before)) = (judged.next(), judged.next()) else { return Vec::new() };
        let missed: HashSet<&JsonPath> =
            before.iter().filter(|found| is_unstated(found)).map(|found| &found.path).collect();
        let is_member = |path: &JsonPath| plan.contract.structure().member(path, &draft.value).is_some();
        let has_form = |path: &JsonPath| {
            let around = path.parent().unwrap_or_default();
            let members = around.get(&draft.value).and_then(serde_json::Value::as_object);
            members.is_some_and(|members| {
                members.is_empty() || members.keys().any(|name| is_member(&around.key(name.as_str())))
            })
        };
        let unstated = last.iter().filter(|found| is_unstated(found) && missed.contains(&found.path));
        unstated.map(|found| &found.path).filter(|path| is_member(path) && has_form(path)).cloned().collect()
    }

    fn wait(&mut self, plan: &Plan, now: Time, wait: Duration) {
        let is_unreached =
            matches!(self.failure(), Some(Failure::Fault(fault)) if fault.kind == FaultKind::Unreachable);
        if self.position.advice.fails_fast && is_unreached && !wait.is_zero() {
            return self.give_up_on_failure(plan, false);
        }
        let until = now.after(wait);
        if self.deadline(plan).is_some_and(|deadline| until >= deadline) && !wait.is_zero() {
            return self.give_up(plan, ErrorKind::Deadline, "the next retry would come after the deadline");
        }
        self.state = if wait.is_zero() { State::Ready } else { State::Waiting { until } };
    }

    /// Advances to a later target; returns `false` if `target` is not later.
    pub(super) fn advance(&mut self, plan: &Plan, target: usize) -> bool {
        let is_later = self.position.advance(plan, target);
        if is_later {
            self.leave_target();
            self.counters.enter_target();
            self.request.enter_target();
        }
        is_later
    }
}
