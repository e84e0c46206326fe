//! Takes in the result of a call: judges it, adds it to the ledger, and starts the next decision.

use std::sync::Arc;

use super::end::over_budget;
use super::entry::Answered;
use super::examine::{Examined, Question};
use super::sampling::refused as refused_sampling;
use super::step::External;
use super::{Run, State};
use crate::{
    Ask, CallResult, Completion, Cost, ErrorKind, Failure, Fault, FaultKind, Finish, Plan, Severity, Time,
    Usage, Violation, Warning,
};

impl Run {
    pub(super) fn answered(
        &mut self,
        plan: &Plan,
        now: Time,
        completion: Completion,
        stopped: Option<Violation>,
    ) {
        if let Some(usage) = completion.probe.as_deref().copied() {
            self.enter(plan, now, CallResult::Probe, usage, Answered::default());
        }
        let State::Calling { call, .. } = &self.state else { return };
        let text: Arc<str> = completion.text.as_str().into();
        let question = Question {
            plan,
            call,
            ask: &self.request.ask,
            draft: self.drafts.current(),
            context: self.context(),
            attempt: self.attempt(),
            text: &text,
            entry: self.ledger.len(),
            cut_by: match completion.finish {
                _ if self.is_late(plan, now) => "the deadline",
                Finish::Length => "the limit of tokens",
                _ if completion.closed_at.is_some() => "the limit of tokens",
                _ => "the end of the text",
            },
        };
        let Examined { draft, edits, failure, ignored } = question.examine(&completion, stopped);
        let is_patch = matches!(&self.request.ask, Ask::Patch(_));
        let previous = self.drafts.previous();
        // Only a repetition by the same target counts: another target may give the same wrong answer once.
        let target = self.position.target_of(plan).map(|target| target.name.as_str());
        let is_own =
            self.drafts.wrong(&self.ledger).is_some_and(|wrong| Some(wrong.target.as_str()) == target);
        let repeated = !is_patch && is_own && !previous.is_empty() && *previous == text;
        let found = failure.as_ref().map_or(0, |failure| failure.violations().len());
        let stalled = is_patch && (draft.is_none() || found >= self.drafts.violations(&self.ledger).len());
        let accepted = failure.is_none();
        if matches!(failure, Some(Failure::Truncated { .. })) && completion.closed_at.is_some() {
            // The provider has a token limit of its own where none is sent; the policy raises the limit above this number.
            self.request.met_limit(completion.usage.output_tokens);
        }
        let bounding = self.bounding(plan, now, &completion.finish, failure.as_ref());
        let verdict = failure.map_or(CallResult::Accepted, |failure| CallResult::Failed { failure });
        let closed = draft.iter().flat_map(|draft| draft.closed.paths().cloned()).collect();
        let Completion { original, notes, finish, restrained, usage, .. } = completion;
        let (finish, of_answer) = (Some(finish), Arc::clone(&text));
        let answer = Answered { text: of_answer, original, notes, finish, edits, closed, restrained };
        self.enter(plan, now, verdict, usage, answer);
        if let Some(proof) = ignored {
            self.was_ignored(plan, proof);
        } else if let Some(bounding) = bounding {
            self.set_bounded(plan, bounding);
        }
        self.counters.answered(self.request.counts);
        // A patch without a usable value leaves the draft and its violations unchanged.
        let unchanged = draft.is_none() && is_patch;
        if let Some(draft) = draft {
            self.drafts.replace(draft, &self.ledger);
        }
        if accepted && plan.options.async_checks {
            let id = self.next_id();
            self.state = State::Outside { id, who: External::Checks, end: None };
        } else if accepted {
            self.accept(plan);
        } else {
            let entry = self.ledger.len().checked_sub(1).filter(|_| !unchanged);
            match self.drafts.current() {
                Some(_) if is_patch => self.drafts.reject_current(entry),
                _ => self.drafts.reject(text, entry),
            }
            self.decide(plan, now, repeated, stalled);
        }
    }

    pub(super) fn failed(&mut self, plan: &Plan, now: Time, fault: Fault, usage: Usage) {
        let refused = (fault.kind == FaultKind::SchemaRefused).then(|| fault.message.clone());
        let State::Calling { call, .. } = &self.state else { return };
        let sampling =
            refused_sampling(&fault, &call.sampling).map(|parameter| (parameter, fault.message.clone()));
        let verdict = CallResult::Failed { failure: Failure::Fault(fault) };
        self.enter(plan, now, verdict, usage, Answered::default());
        if let Some((parameter, reason)) = sampling {
            // The same call without the parameter is no further attempt; there are three parameters at most.
            self.was_refused_sampling(plan, parameter, &reason);
            self.state = State::Ready;
        } else if refused.is_some_and(|reason| self.was_refused(plan, &reason)) {
            self.state = State::Ready;
        } else {
            self.counters.failed();
            self.decide(plan, now, false, false);
        }
    }

    /// A shared budget has no room for the call: a cheaper target of those that are left may have.
    pub(super) fn denied(&mut self, plan: &Plan, left: Option<Cost>) {
        let State::Calling { call, .. } = &self.state else { return };
        let denied = self.reserve(plan, call);
        if self.go_to_cheaper(plan, |cost| cost.fits(denied) && cost != denied) {
            self.state = State::Ready;
        } else {
            self.give_up(plan, ErrorKind::Budget, &over_budget(denied, left));
        }
    }

    pub(super) fn checked(&mut self, plan: &Plan, now: Time, violations: Vec<Violation>) {
        let (violations, warnings): (Vec<_>, Vec<_>) =
            violations.into_iter().partition(|violation| violation.severity == Severity::Error);
        if violations.is_empty() {
            self.drafts.warn(warnings.into_iter().map(Warning::from));
            self.accept(plan);
            return;
        }
        if let Some(last) = self.ledger.last_mut() {
            last.verdict = CallResult::Failed { failure: Failure::Invalid { violations } };
        }
        self.drafts.reject_current(self.ledger.len().checked_sub(1));
        self.decide(plan, now, false, false);
    }
}
