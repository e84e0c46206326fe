//! The evidence of calls about their targets, for [`Health`](crate::Health).

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::mem;
use std::time::Duration;

use super::compliance::Proof;
use super::examine::Examined;
use super::learn::Bounding;
use super::{Run, State};
use crate::health::DECLINED;
use crate::{
    Advice, Ask, Call, Completion, Enforcement, ErrorKind, Evidence, Failure, Fault, FaultKind, Plan,
    RateLimit, Shown, Size, Time,
};

/// The time before the deadline in which a time-out counts as caused by the deadline: transports and engines apply the same
/// deadline with clocks of their own.
pub(super) const DEADLINE_SLACK: Duration = Duration::from_millis(50);

/// The minimum duration of a call after which a time-out at the deadline of the caller counts as a failure of the target.
const TIME_ENOUGH: Duration = Duration::from_secs(10);

impl Run {
    /// Sets the advice of [`Health`](crate::Health) about the targets of the plan (default: that of a process without
    /// observations). No effect after the first step.
    pub fn set_advice(&mut self, advice: Advice) {
        if self.started.is_none() {
            self.position.advice = advice;
        }
    }

    /// Returns the evidence since the last call of this method, for [`Health`](crate::Health). A driver calls it after each event:
    /// evidence that was not taken is not stored with the run.
    pub fn take_evidence(&mut self, plan: &Plan) -> Vec<Evidence> {
        let mut evidence = mem::take(&mut self.evidence);
        if let State::Failed(end) = &self.state {
            // A run that was cancelled did not end with its last answer.
            self.last_evidence.take_if(|_| end.kind == ErrorKind::Cancelled);
            if matches!(end.kind, ErrorKind::Unavailable | ErrorKind::Deadline) {
                evidence.extend(self.unreached(plan));
            }
        }
        if self.is_done() {
            evidence.extend(self.last_evidence.take());
        }
        evidence
    }

    /// Continues in a mode without schema enforcement if the last answer was prose: [`Health`](crate::Health) has counted enough
    /// requests with such answers since this run began. A driver calls it after an answer, with
    /// [`Health::ignores`](crate::Health::ignores). No effect if the run waits for an answer or has ended.
    pub fn leave_enforcement(&mut self, plan: &Plan) {
        let target = plan.key(self.position.target);
        let is_open = !self.is_done() && !matches!(self.state, State::Calling { .. });
        if is_open && self.last_evidence.as_ref().is_some_and(|last| last.target == target) {
            self.position.leave_schema_mode(plan);
        }
    }

    /// Returns the evidence that this run ended because it could not reach targets.
    fn unreached(&self, plan: &Plan) -> Vec<Evidence> {
        let at = self.ledger.last().map(|call| call.ended).unwrap_or_default();
        let is_unreached = |target: &usize| {
            let name = plan.targets.get(*target).map(|target| target.name.as_str());
            let last = self.ledger.iter().rev().find(|call| Some(call.target.as_str()) == name);
            let failure = last.and_then(|call| call.verdict.failure());
            matches!(failure, Some(Failure::Fault(fault)) if fault.kind == FaultKind::Unreachable)
        };
        let targets = (0..plan.targets.len()).filter(is_unreached);
        targets.map(|target| self.evidence_of(plan, target, at, false, Shown::GaveUp)).collect()
    }

    fn evidence_of(&self, plan: &Plan, target: usize, at: Time, enforced: bool, shown: Shown) -> Evidence {
        let mut hash = DefaultHasher::new();
        self.input.messages.iter().flat_map(|message| message.texts()).for_each(|text| text.hash(&mut hash));
        Evidence {
            target: plan.key(target),
            name: plan.targets.get(target).map(|target| target.name.clone()).unwrap_or_default(),
            has_identity: plan.identity(target).is_some(),
            model: String::new(),
            schema: plan.schema_digest().to_owned(),
            request: hash.finish(),
            at,
            enforced,
            shown,
        }
    }

    /// Adds the evidence of an answer.
    pub(super) fn show_answer(
        &mut self,
        plan: &Plan,
        now: Time,
        completion: &Completion,
        examined: &Examined,
        bounding: Option<&Bounding>,
    ) {
        let State::Calling { call, .. } = &self.state else { return };
        let is_whole = self.request.ask == Ask::Whole;
        let enforced = is_whole && call.enforcement() == Enforcement::Schema;
        let shown = match (&examined.ignored, bounding, &examined.draft) {
            (Some(Proof::Impossible(reason)), ..) => Shown::Impossible { reason: reason.clone() },
            (Some(Proof::Prose(reason)), ..) => Shown::Prose { reason: reason.clone() },
            (_, Some(Bounding::RanAway(reason)), _) => {
                let longest = self.position.advised().map(|advice| advice.longest).unwrap_or_default();
                Shown::RanAway { reason: reason.clone(), longest }
            }
            (_, Some(Bounding::Exceeded), _) => Shown::BeyondBound,
            (.., Some(draft)) if is_whole && is_complete(examined) => {
                Shown::Complete { size: Size::of(&draft.value), bounded: self.position.has_bounds }
            }
            _ if enforced && matches!(examined.failure, Some(Failure::Refused { .. })) => Shown::Declined,
            _ => Shown::Answered,
        };
        let mut evidence = self.evidence_of(plan, self.position.target, now, enforced, shown);
        evidence.model = completion.model.clone().unwrap_or_default();
        self.position.advice.answered(self.position.target);
        if matches!(evidence.shown, Shown::Prose { .. } | Shown::Declined) {
            // It counts as the end of the request only if no later answer of the target keeps to the schema.
            let reason = match &evidence.shown {
                Shown::Prose { reason } => reason.clone(),
                _ => DECLINED.to_owned(),
            };
            self.evidence.push(Evidence { shown: Shown::InProse { reason }, ..evidence.clone() });
            self.last_evidence = Some(evidence);
            return;
        }
        if evidence.shown != Shown::Answered && enforced {
            self.last_evidence.take_if(|last| last.target == evidence.target);
        }
        self.evidence.push(evidence);
    }

    /// Adds the evidence that the server takes no further call for a time.
    pub(super) fn show_pause(&mut self, plan: &Plan, now: Time, completion: &Completion) {
        let Some(pause) = RateLimit::pause(&completion.limits).filter(|pause| !pause.is_zero()) else {
            return;
        };
        let pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        let shown = Shown::LimitReached { pause_ms };
        self.evidence.push(self.evidence_of(plan, self.position.target, now, false, shown));
    }

    /// Adds the evidence of a failed call, unless a short deadline of the caller is the reason.
    pub(super) fn show_fault(&mut self, plan: &Plan, now: Time, fault: &Fault) {
        let State::Calling { call, since, .. } = &self.state else { return };
        let is_short = call.deadline.is_some_and(|deadline| {
            now.after(DEADLINE_SLACK) >= deadline && deadline.since(*since) < TIME_ENOUGH
        });
        if fault.kind == FaultKind::Timeout && is_short {
            return;
        }
        let enforced = self.request.ask == Ask::Whole && call.enforcement() == Enforcement::Schema;
        let target = self.position.target;
        self.position.advice.failed(target, fault, now);
        let shown = Shown::Failed { fault: fault.clone() };
        let evidence = self.evidence_of(plan, target, now, enforced, shown);
        self.evidence.push(evidence);
    }

    /// Adds the evidence that the server rejected a part of a request.
    pub(super) fn show_refusal(&mut self, plan: &Plan, now: Time, shown: Shown) {
        let evidence = self.evidence_of(plan, self.position.target, now, false, shown);
        self.evidence.push(evidence);
    }

    /// Records the evidence of the target that the run leaves: it gets no further answer of it.
    pub(super) fn leave_target(&mut self) {
        self.evidence.extend(self.last_evidence.take());
    }
}

/// Returns whether the model ended the document of an answer.
const fn is_complete(examined: &Examined) -> bool {
    matches!(examined.failure, None | Some(Failure::Invalid { .. }))
}

/// Returns whether a call failed because of its deadline.
pub(super) fn is_at_deadline(call: &Call, fault: &Fault, now: Time) -> bool {
    fault.kind == FaultKind::Timeout
        && call.deadline.is_some_and(|deadline| deadline.since(now) <= DEADLINE_SLACK)
}
