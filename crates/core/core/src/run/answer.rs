//! Takes in the result of a call: judges it, adds it to the ledger, and starts the next decision.

use std::sync::Arc;

use super::closed::RUNAWAY;
use super::drafts::Draft;
use super::entry::Answered;
use super::evidence::is_at_deadline;
use super::examine::Examined;
use super::question::Question;
use super::rest::without_loop;
use super::sampling::refused as refused_sampling;
use super::step::External;
use super::{Run, State};
use crate::log_prob::LogProbs;
use crate::{
    Ask, Call, CallResult, Completion, Connection, Cost, ErrorKind, Failure, Fault, FaultKind, Finish, Plan,
    Severity, Time, Usage, Violation, Warning,
};

impl Run {
    pub(super) fn answered(
        &mut self,
        plan: &Plan,
        now: Time,
        mut completion: Completion,
        mut stopped: Option<Violation>,
    ) {
        if let Some(usage) = completion.probe.as_deref().copied() {
            self.enter(plan, now, CallResult::Probe, usage, Answered::default());
        }
        let State::Calling { call, .. } = &self.state else { return };
        let call = Arc::clone(call);
        let prefix = self.request.prefix.as_deref().filter(|prefix| completion.text.starts_with(*prefix));
        let continued = prefix.map_or(0, str::len);
        if continued > 0 {
            completion
                .notes
                .push(format!("the model was given the first {continued} bytes of the answer before"));
        }
        let written = completion.text.len() - continued + completion.reasoning.len();
        completion.usage = completion.usage.or_estimate(&call, written);
        let looped = stopped.as_ref().filter(|reason| call.ends_loops && reason.rule == RUNAWAY);
        if let Some(text) =
            looped.and_then(|reason| without_loop(&completion.text, reason, plan.options.level))
        {
            (completion.text, completion.restrained, stopped) = (text, true, None);
        }
        let text: Arc<str> = completion.text.as_str().into();
        let cut_by = match completion.finish {
            _ if self.is_late(plan, now) => "the deadline",
            Finish::Length => "the limit of tokens",
            _ if completion.closed_at.is_some() => "the limit of tokens",
            _ => "the end of the text",
        };
        let question = self.question(plan, &call, &text, cut_by);
        let mut examined = question.examine(&completion, stopped);
        if examined.exceeds_bound {
            // The server does not enforce the bounds of a schema; whether it enforces the rest is shown without them.
            examined.ignored = None;
        }
        let is_closed = examined.draft.as_ref().is_some_and(|draft| draft.closed.paths().next().is_some());
        let is_cut = matches!(examined.failure, Some(Failure::Truncated { .. })) || is_closed;
        let output = completion.usage.output_tokens;
        let at_limit = completion.finish == Finish::Length
            || call.max_tokens.is_some_and(|limit| output >= u64::from(limit));
        if !is_cut && completion.finish.is_by_model() {
            self.size.saw(output);
        }
        // An answer that was cut off at a limit of the run's own is no evidence about the model.
        let is_raised = is_cut && at_limit && !self.is_late(plan, now) && self.raises_limit(plan, &call);
        let bounding = self.bounding(plan, now, &completion.finish, &examined).filter(|_| !is_raised);
        self.show_answer(plan, now, &completion, &examined, bounding.as_ref());
        self.show_pause(plan, now, &completion);
        let Examined { draft, read, edits, failure, ignored, .. } = examined;
        let is_patch = matches!(&self.request.ask, Ask::Patch(_));
        let previous = self.drafts.previous();
        // Only a repetition by the same target counts: another target may give the same wrong answer once.
        let target = self.position.target_of(plan).map(|target| target.name.as_str());
        let is_own =
            self.drafts.wrong(&self.ledger).is_some_and(|wrong| Some(wrong.target.as_str()) == target);
        let repeated = !is_patch && is_own && !previous.is_empty() && *previous == text;
        let found = failure.as_ref().map_or(0, Failure::total);
        let stalled = is_patch
            && draft.as_ref().is_none_or(|draft| match self.drafts.current() {
                Some(before) if !draft.rest.is_empty() => before.value == draft.value,
                Some(before) if !before.rest.is_empty() => false,
                _ => found >= self.drafts.failure(&self.ledger).map_or(0, Failure::total),
            });
        let accepted = failure.is_none();
        if matches!(failure, Some(Failure::Truncated { .. })) && completion.closed_at.is_some() {
            // The provider has a token limit of its own where none is sent; the policy raises the limit above this number.
            self.request.met_limit(completion.usage.output_tokens);
        }
        let verdict = failure.map_or(CallResult::Accepted, |failure| CallResult::Failed { failure });
        let closed =
            read.iter().chain(&draft).take(1).flat_map(|draft| draft.closed.paths().cloned()).collect();
        let Completion { original, notes, log_probs, model, finish, restrained, usage, .. } = completion;
        let (finish, of_answer) = (Some(finish), Arc::clone(&text));
        let log_probs = LogProbs(log_probs.into());
        let answer = Answered {
            text: of_answer,
            log_probs,
            original,
            notes,
            model,
            finish,
            edits,
            closed,
            restrained,
        };
        self.enter(plan, now, verdict, usage, answer);
        if let Some(proof) = ignored {
            self.was_ignored(plan, proof, accepted);
        } else if let Some(bounding) = bounding {
            self.set_bounded(plan, bounding);
        }
        if let Some(read) = read {
            self.drafts.replace(read, &self.ledger);
        }
        if is_raised {
            self.counters.clear_faults();
            if let Some(draft) = draft {
                self.continues(draft, text);
            }
            self.state = State::Ready;
            return;
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

    /// Takes in an answer that began and did not end. If the deadline cut it off, it counts like one that the token limit cut off;
    /// without any text, it is a time-out.
    pub(super) fn broken_off(&mut self, plan: &Plan, now: Time, mut fault: Fault, received: Completion) {
        let State::Calling { call, .. } = &self.state else { return };
        // The provider charges for what it reported and for the text that arrived, even if the call failed afterwards. An error that it
        // tells before any text costs nothing; if the connection breaks, it has read the prompt.
        let arrived = received.text.len() + received.reasoning.len();
        let is_cut = fault.kind == FaultKind::Unreachable;
        let usage = match is_cut || arrived > 0 || received.usage != Usage::default() {
            true => received.usage.or_more(Usage::estimate(call, arrived)),
            false => Usage::default(),
        };
        if is_at_deadline(call, &fault, now) && !received.text.is_empty() {
            let now = call.deadline.map_or(now, |deadline| now.max(deadline));
            let completion = received.with_finish(Finish::Length).with_usage(usage);
            return self.answered(plan, now, completion, None);
        }
        let call = Arc::clone(call);
        let text: Arc<str> = received.text.as_str().into();
        let question = self.question(plan, &call, &text, "the end of the text");
        let begun = question.begun(&received).map(|draft| (draft, text));
        if fault.kind == FaultKind::Unreachable && fault.connection.is_none() {
            fault = fault.with_connection(Connection::Broken);
        }
        // The ledger has no separate entry for the probe before a failed call, so its usage is added here.
        let usage = received.probe.as_deref().map_or(usage, |probe| usage.plus(*probe));
        self.failed_after(plan, now, fault, usage, begun);
    }

    /// Returns the request that the answer to this call is examined against. `cut_by` is the limit that ended an answer that was cut
    /// off.
    fn question<'a>(
        &'a self,
        plan: &'a Plan,
        call: &'a Call,
        text: &'a Arc<str>,
        cut_by: &'static str,
    ) -> Question<'a> {
        Question {
            plan,
            call,
            ask: &self.request.ask,
            draft: self.drafts.current(),
            context: self.context(),
            source: &self.source,
            attempt: self.attempt(),
            text,
            entry: self.ledger.len(),
            cut_by,
        }
    }

    /// Requests only the rest of an answer from now on, if its beginning can be continued. The call counts as the one that it continues.
    fn continues(&mut self, draft: Draft, text: Arc<str>) {
        if self.position.refuses_patches || draft.rest.is_empty() {
            return;
        }
        (self.request.ask, self.request.prefix) = (Ask::Patch(draft.rest.clone()), None);
        let entry = draft.entry;
        self.drafts.replace(draft, &self.ledger);
        self.drafts.reject(text, Some(entry));
    }

    pub(super) fn failed(&mut self, plan: &Plan, now: Time, fault: Fault, usage: Usage) {
        self.failed_after(plan, now, fault, usage, None);
    }

    /// Takes in a failed call. `begun` is the document with the values of its answer that had ended, and the text of the answer.
    fn failed_after(
        &mut self,
        plan: &Plan,
        now: Time,
        fault: Fault,
        usage: Usage,
        begun: Option<(Draft, Arc<str>)>,
    ) {
        let is_refused_patch = matches!(self.request.ask, Ask::Patch(_))
            && matches!(fault.kind, FaultKind::SchemaRefused | FaultKind::BadRequest);
        let refused = (fault.kind == FaultKind::SchemaRefused).then(|| fault.message.clone());
        let State::Calling { call, .. } = &self.state else { return };
        // The clocks of provider and driver differ by milliseconds, and the reason for the end must not depend on the difference.
        let is_late = is_at_deadline(call, &fault, now);
        // A server that does not answer in time has read the prompt, and charges for it.
        let is_sent = fault.kind == FaultKind::Timeout && fault.connection.is_none();
        let usage = if is_sent && usage == Usage::default() { Usage::estimate(call, 0) } else { usage };
        let now = call.deadline.filter(|_| is_late).map_or(now, |deadline| now.max(deadline));
        let sampling =
            refused_sampling(&fault, &call.sampling).map(|parameter| (parameter, fault.message.clone()));
        if sampling.is_none() && refused.is_none() {
            self.show_fault(plan, now, &fault);
        }
        let verdict = CallResult::Failed { failure: Failure::Fault(fault) };
        self.enter(plan, now, verdict, usage, Answered::default());
        if let Some((parameter, reason)) = sampling {
            // The same call without the parameter is no further attempt; there are three parameters at most.
            self.was_refused_sampling(plan, now, parameter, &reason);
            self.state = State::Ready;
        } else if is_refused_patch {
            // The server may accept the schema of the whole document.
            self.position.refuses_patches = true;
            self.request.ask_whole();
            self.state = State::Ready;
        } else if refused.is_some_and(|reason| self.was_refused(plan, now, &reason)) {
            self.state = State::Ready;
        } else {
            let is_resume = self.request.ask != Ask::Whole || self.request.prefix.is_some();
            let has_more =
                |draft: &Draft| self.drafts.current().is_none_or(|before| before.value != draft.value);
            if let Some((draft, text)) = begun.filter(|(draft, _)| !is_resume || has_more(draft)) {
                if is_resume {
                    // A continuation that adds a value is an attempt, whatever ends it.
                    self.counters.answered(self.request.counts);
                }
                self.continues(draft, text);
            }
            self.counters.failed();
            self.decide(plan, now, false, false);
        }
    }

    /// Continues after a shared budget refused the call: a cheaper target may fit.
    pub(super) fn denied(&mut self, plan: &Plan, now: Time, left: Option<Cost>) {
        let State::Calling { call, .. } = &self.state else { return };
        if self.deadline(plan).is_some_and(|deadline| now >= deadline) {
            let message = "the deadline passed while the call waited for the budget";
            return self.give_up(plan, ErrorKind::Deadline, message);
        }
        let call = Arc::clone(call);
        if left.is_some_and(|left| self.fits_limit(plan, &call, left)) {
            self.state = State::Ready;
            return;
        }
        let denied = self.reserve(plan, &call);
        let needed = self.reserve_within(plan, &call, self.min_limit());
        self.without_money(plan, now, needed, [left, None], |cost| cost.fits(denied) && cost != denied);
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
            last.verdict = CallResult::Failed { failure: Failure::Invalid { violations, left_out: 0 } };
        }
        self.drafts.reject_current(self.ledger.len().checked_sub(1));
        self.decide(plan, now, false, false);
    }
}
