//! Decides the next call: the first one, and the one after an answer that was not accepted or a call that failed.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::counters::Counters;
use super::end::over_budget;
use super::position::Position;
use super::request::Request;
use super::{DEADLINE_PASSED, MAX_CALLS, Run, State};
use crate::absence::settle::is_unstated;
use crate::call::written;
use crate::{
    Ask, Call, Cost, Decision, ErrorKind, Estimates, Evidence, Failure, FaultKind, Feedback, JsonPath, Plan,
    RetryContext, Time, Usage, Warning, WarningKind,
};

/// The facts about the last answer besides its failure.
#[derive(Clone, Copy)]
struct Last<'a> {
    /// Whether the same answer came before.
    repeated: bool,
    /// Whether it was a patch that corrected nothing.
    stalled: bool,
    /// The required members that this answer and the one before do not state.
    not_stated: &'a [JsonPath],
}

/// The expected length of a value that an answer lacks, in bytes.
const MISSING: usize = 16;

/// The expected length of the name of a value in a patch, in bytes.
const NAME: usize = 12;

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
        self.prefer_continuation(plan);
        let (call, skipped) = match self.composed(plan) {
            Ok(composed) => composed,
            Err(message) => return self.give_up(plan, ErrorKind::Config, &message),
        };
        if let Some(budget) = self.budget(plan) {
            let (worst, left) = (self.reserve(plan, &call), budget.minus(self.counters.spent));
            if !worst.fits(left) {
                if self.fits_less_reasoning(plan, &call, left) {
                    return self.begin(plan, now);
                }
                let needed = self.reserve_within(plan, &call, self.min_without_reasoning(plan));
                return self.without_money(plan, now, needed, [Some(left); 2], |cost| cost.fits(left));
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

    /// Continues after a budget refused the next call, which needs `needed` at least. `left` is the rest of that budget, and `own` the same if it
    /// is that of the run, for which the room for reasoning is lowered: on another target whose call `may_cost`
    /// accepts, or on the target that the run was about to leave for this one. Ends the run if there is no such target.
    pub(super) fn without_money(
        &mut self,
        plan: &Plan,
        now: Time,
        needed: Cost,
        [left, own]: [Option<Cost>; 2],
        may_cost: impl Fn(Cost) -> bool,
    ) {
        let mut open: Vec<usize> = self.position.open(plan).collect();
        open.sort_unstable();
        let payable = open.into_iter().find(|target| {
            let mut there = self.clone();
            there.advance(plan, *target);
            there.composed(plan).is_ok_and(|(call, _)| {
                may_cost(there.reserve(plan, &call))
                    || own.is_some_and(|left| there.fits_less_reasoning(plan, &call, left))
            })
        });
        if let Some(target) = payable {
            self.position.advance_for_money(plan, target);
            self.entered();
            self.state = State::Ready;
            return;
        }
        if let Some(before) = self.before.take() {
            let Before { position, request, counters, last_evidence, repeated, stalled } = *before;
            (self.position, self.request, self.counters) = (position, request, counters);
            self.last_evidence = last_evidence;
            let not_stated = self.not_stated(plan);
            let last = Last { repeated, stalled, not_stated: &not_stated };
            let (decision, _) = self.advice(plan, now, None, last);
            if decision.next_target() == Some(false) {
                return self.carry_out(plan, now, decision);
            }
        }
        self.give_up(plan, ErrorKind::Budget, &over_budget(needed, left));
    }

    /// Returns the maximum cost of a call: a token has at least one byte, and reasoning counts as part of the answer.
    pub(super) fn reserve(&self, plan: &Plan, call: &Call) -> Cost {
        let Some(target) = self.position.target_of(plan) else { return Cost::default() };
        let answer = call.max_tokens.or(target.capabilities.output_tokens).unwrap_or(UNLIMITED);
        let mode = self.position.mode_of(plan).filter(|mode| Arc::ptr_eq(&mode.whole, &call.lowered));
        let input_tokens = mode
            .map_or_else(|| call.most_input_tokens(), |mode| call.most_input_tokens_with(mode.schema_bytes));
        let most = Usage::new(input_tokens, u64::from(answer));
        target.price.map_or_else(|| most.unpriced(), |price| price.at_most(most))
    }

    /// Applies the policy's decision, within the bounds of the run.
    pub(super) fn decide(&mut self, plan: &Plan, now: Time, repeated: bool, stalled: bool) {
        if self.deadline(plan).is_some_and(|deadline| now >= deadline) {
            // The deadline is the reason for the end here, not the last failure.
            return self.give_up(plan, ErrorKind::Deadline, DEADLINE_PASSED);
        }
        let next = self.position.next(plan, now);
        let not_stated = self.not_stated(plan);
        let last = Last { repeated, stalled, not_stated: &not_stated };
        let (decision, is_for_price) = self.advice(plan, now, next, last);
        match (decision.next_target(), next) {
            (Some(false), _) => {}
            (Some(true), Some((target, _))) => {
                let Self { position, request, counters, .. } = self.clone();
                let last_evidence = self.last_evidence.take();
                let before = Before { position, request, counters, last_evidence, repeated, stalled };
                self.before = Some(Box::new(before));
                if is_for_price {
                    let warning = self.cheaper(plan, target);
                    self.position.cheaper.push(warning);
                }
                self.advance(plan, target);
            }
            (None, _) if decision == Decision::NotStated && !not_stated.is_empty() => {
                return self.give_up_unstated(plan, not_stated);
            }
            _ => return self.give_up_on_failure(plan, repeated),
        }
        self.carry_out(plan, now, decision);
    }

    fn carry_out(&mut self, plan: &Plan, now: Time, decision: Decision) {
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

    /// Returns the warning that the run leaves its target for a cheaper one.
    fn cheaper(&self, plan: &Plan, target: usize) -> Warning {
        let name = |index: usize| plan.targets.get(index).map_or("", |target| target.name.as_str());
        let message = format!(
            "`{}` was left for `{}` after an answer that was not accepted, because the next step is estimated to be cheaper there: {}",
            name(self.position.target),
            name(target),
            self.estimates
        );
        Warning::new(WarningKind::CheaperTarget, message)
    }

    /// Returns the policy's decision about the last call, and whether it leaves the target only because of the estimate for the next
    /// one. `next` is the next target and the time until it is in service.
    fn advice(
        &mut self,
        plan: &Plan,
        now: Time,
        next: Option<(usize, Duration)>,
        last: Last<'_>,
    ) -> (Decision, bool) {
        let draw = self.draw();
        let (Some(failure), Some(target)) = (self.failure(), self.position.target_of(plan)) else {
            return (Decision::GiveUp, false);
        };
        let ask = &self.request.ask;
        let is_begun = self.drafts.current().is_some_and(|draft| !draft.rest.is_empty());
        let about_values =
            is_begun || matches!(failure, Failure::Invalid { .. }) || matches!(ask, Ask::Patch(_));
        let mut patchable = if about_values && plan.policy.patches() && !self.position.refuses_patches {
            self.patchable(plan)
        } else {
            Vec::new()
        };
        if !patchable.is_empty() && !self.can_patch(plan, &patchable) {
            patchable.clear();
        }
        let is_asked = matches!(failure, Failure::Fault(_) | Failure::Refused { .. });
        let estimates = if is_asked {
            Estimates::default()
        } else {
            let patch = Some(Ask::Patch(patchable.clone())).filter(|_| !patchable.is_empty());
            let of = |target| {
                let patch = patch.as_ref().and_then(|patch| self.estimate(plan, patch, target));
                (patch, self.estimate(plan, &Ask::Whole, target))
            };
            let (patch, whole) = of(None);
            let next = next.and_then(|(target, _)| {
                let (patch, whole) = of(Some(target));
                if Estimates::is_cheaper(whole, patch) { whole } else { patch.or(whole) }
            });
            Estimates { patch, whole, next }
        };
        self.estimates = estimates;
        let (Some(failure), ask) = (self.failure(), &self.request.ask) else {
            return (Decision::GiveUp, false);
        };
        let mut context = RetryContext {
            estimates,
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
            retries: &target.retries,
            own_in: self.position.wait(now).unwrap_or_default(),
            next: next.and_then(|(target, _)| plan.targets.get(target)).map(|next| &next.capabilities),
            next_in: next.map(|(_, wait)| wait),
            remaining: self.deadline(plan).map(|deadline| deadline.since(now)),
            draw,
        };
        let decision = plan.policy.decide(&context);
        let leaves = decision.next_target() == Some(true) && estimates.next.is_some();
        context.estimates.next = None;
        let is_for_price = leaves && plan.policy.decide(&context).next_target() == Some(false);
        (decision, is_for_price)
    }

    /// Returns the estimated cost of a call that requests this part of the document from the current target or another one; `None`
    /// if the call cannot be made.
    pub(super) fn estimate(&self, plan: &Plan, ask: &Ask, target: Option<usize>) -> Option<Cost> {
        let mut there = self.clone();
        if let Some(target) = target {
            there.position.advance(plan, target).then_some(())?;
        }
        there.request.ask = ask.clone();
        there.request.feedback.get_or_insert_with(|| Arc::new(Feedback::standard()));
        let (call, _) = there.compose(plan).ok()?;
        let draft = self.drafts.current();
        let whole = draft.map_or(self.drafts.previous().len(), |draft| draft.text.len());
        // Nobody knows the length of the rest of an answer; the beginning is part of the whole alone.
        let rest = draft.filter(|draft| !draft.rest.is_empty()).map_or(0, |_| whole);
        let answer = match (ask, draft) {
            (Ask::Patch(paths), Some(draft)) => {
                let value = |path: &JsonPath| path.get(&draft.value).map_or(MISSING, written) + NAME;
                paths.iter().map(value).sum::<usize>() + rest
            }
            _ if there.request.prefix.is_some() => rest,
            _ => whole + rest,
        };
        Some(there.position.target_of(plan)?.cost(Usage::estimate(&call, answer)))
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
            Some(Failure::Invalid { violations, .. }) => Some(violations),
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

    /// Enters another target; returns `false` if that is not open.
    pub(super) fn advance(&mut self, plan: &Plan, target: usize) -> bool {
        let is_open = self.position.advance(plan, target);
        if is_open {
            self.entered();
        }
        is_open
    }

    /// Resets the state that belongs to the target that the run has left.
    fn entered(&mut self) {
        self.leave_target();
        self.size.enter_target();
        self.counters.enter_target();
    }
}

/// The state of a run before it left a target for another one that it has not called yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Before {
    position: Position,
    request: Request,
    counters: Counters,
    /// The evidence that counts if the run does not return.
    pub(super) last_evidence: Option<Evidence>,
    repeated: bool,
    stalled: bool,
}
