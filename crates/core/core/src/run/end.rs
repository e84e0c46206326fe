//! The end of a run.

use std::sync::Arc;
use std::time::Duration;

use formwork_json::JsonPath;
use serde::{Deserialize, Serialize};

use super::drafts::Draft;
use super::entry::Answered;
use super::step::External;
use super::warnings::of_incomplete;
use super::{Run, State};
use crate::violation::write_place;
use crate::{
    CallRecord, CallResult, Completion, Cost, ErrorKind, Failure, FaultKind, Finish, Origin, Plan,
    Provenance, Refused, Source, Time, Usage, Violation, Warning, WarningKind,
};

/// The error with which a run ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct End {
    pub(super) kind: ErrorKind,
    pub(super) message: String,
    /// The required members that the text does not state, if that is the reason.
    #[serde(default)]
    pub(super) not_stated: Vec<JsonPath>,
}

impl End {
    pub(super) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), not_stated: Vec::new() }
    }
}

/// The message of a run that ends at its deadline.
pub(super) const DEADLINE_PASSED: &str = "the deadline passed before an answer was accepted";

impl Run {
    /// Accepts the current draft.
    pub(super) fn accept(&mut self, plan: &Plan) {
        let Some(draft) = self.drafts.accept() else { return };
        let target = self.ledger.last().map(|call| call.target.clone()).unwrap_or_default();
        let Draft { value, mut provenance, mut warnings, closed, decoded, .. } = draft;
        self.decoded = decoded;
        self.schema = plan.contract.accepted();
        warnings.extend(
            plan.skipped_before(self.position.target, self.position.mode)
                .map(|(dialect, reason)| skipped(dialect, reason)),
        );
        warnings.extend(self.estimated());
        warnings.extend_from_slice(&self.position.cheaper);
        warnings.extend_from_slice(plan.contract.warnings());
        warnings.extend(self.weaker_mode(plan));
        let ignored = self.position.target_of(plan).map(|target| &target.capabilities.ignored_settings);
        warnings.extend(ignored.into_iter().flatten().map(|setting| {
            let message = format!("`{target}` does not take the setting `{setting}`, which was not sent");
            Warning::new(WarningKind::IgnoredSetting, message)
        }));
        if self.position.has_bounds {
            let message = "the schema was sent with bounds on lengths, because an answer to it had no end";
            warnings.push(Warning::new(WarningKind::Bounded, message));
        }
        warnings.extend(of_incomplete(&closed));
        provenance.extend(closed.provenance(self.counters.attempts.max(1)));
        let (value, origin) = (Arc::unwrap_or_clone(value), Origin::Model { target });
        let not_stated = plan.contract.not_stated(&value);
        self.state = State::Accepted { value, origin, provenance, warnings, not_stated };
    }

    /// Returns the warning that a target counted no tokens of an answer, if one did.
    fn estimated(&self) -> Option<Warning> {
        let is_estimated = |call: &&CallRecord| {
            call.usage.estimated && call.finish.as_ref().is_some_and(Finish::is_by_model)
        };
        let target = &self.ledger.iter().find(is_estimated)?.target;
        let message = format!(
            "`{target}` reported no tokens for an answer with text; its usage and cost are estimates from the lengths of the texts"
        );
        Some(Warning::new(WarningKind::EstimatedUsage, message))
    }

    /// Ends the run with the fallback's value, or with an error if it violates the contract.
    pub(super) fn fall_back(&mut self, plan: &Plan, mut end: End, value: Option<serde_json::Value>) {
        let judged =
            value.map(|value| (plan.contract.judge_with(&value, &self.context(), &self.source), value));
        self.state = match judged {
            Some((mut judgement, value)) if judgement.is_accepted() => {
                self.decoded = judgement.take_decoded();
                self.schema = plan.contract.accepted();
                let attempt = self.counters.attempts.max(1);
                let whole = Provenance { path: JsonPath::root(), source: Source::Fallback, attempt };
                let provenance = vec![whole];
                let own = plan.contract.warnings().iter().cloned();
                let warnings = judgement.warnings.into_iter().map(Warning::from).chain(own).collect();
                let not_stated = plan.contract.not_stated(&value);
                State::Accepted { value, origin: Origin::Fallback, provenance, warnings, not_stated }
            }
            Some((judgement, _)) => {
                let reason = judgement.violations.first().map(Violation::masked).unwrap_or_default();
                end.message = format!("{}; the fallback's value breaks the contract: {reason}", end.message);
                State::Failed(end)
            }
            None => State::Failed(end),
        };
    }

    /// Ends the run because of the failure of the last call.
    pub(super) fn give_up_on_failure(&mut self, plan: &Plan, repeated: bool) {
        let attempts = self.counters.attempts;
        let explained = self.failure().map(|failure| explain(failure, attempts, repeated));
        let (kind, message) = explained.unwrap_or((ErrorKind::Rejected, String::new()));
        self.give_up(plan, kind, &message);
    }

    /// Ends before the first call: an earlier run has waited for the targets in vain.
    pub(super) fn give_up_unreached(&mut self, plan: &Plan, wait: Duration) {
        let target = self.position.target_of(plan).map(|target| target.name.as_str()).unwrap_or_default();
        let message = format!(
            "`{target}` could not be reached a moment ago, and is not asked for the next {} s",
            wait.as_secs_f64().ceil()
        );
        self.give_up(plan, ErrorKind::Unavailable, &message);
    }

    /// Ends because the text does not state these required members.
    pub(super) fn give_up_unstated(&mut self, plan: &Plan, not_stated: Vec<JsonPath>) {
        let mut named: Vec<String> = not_stated.iter().take(MAX_UNSTATED).map(place).collect();
        if let Some(more) = not_stated.len().checked_sub(MAX_UNSTATED + 1) {
            named.push(format!("{} more", more + 1));
        }
        let message = format!(
            "{}: null or missing in two answers, and required by the schema; allow it with `x-formwork-absent` in the schema or \
             `absent` in a contract",
            named.join(", ")
        );
        self.end(plan, End { not_stated, ..End::new(ErrorKind::NotStated, message) });
    }

    /// Ends without an answer, after the fallback if the plan has one.
    pub(super) fn give_up(&mut self, plan: &Plan, kind: ErrorKind, message: &str) {
        self.end(plan, End::new(kind, message));
    }

    fn end(&mut self, plan: &Plan, end: End) {
        self.state = if plan.options.fallback {
            State::Outside { id: self.next_id(), who: External::Fallback, end: Some(end) }
        } else {
            State::Failed(end)
        };
    }

    /// Ends the run, with the part of an answer that was received.
    pub(super) fn cancel(&mut self, plan: &Plan, now: Time, received: &Completion) {
        if let State::Calling { call, .. } = &self.state {
            let estimate = Usage::estimate(call, received.text.len() + received.reasoning.len());
            let usage = received.usage.or_more(estimate);
            let usage = received.probe.as_deref().map_or(usage, |probe| usage.plus(*probe));
            self.enter(plan, now, CallResult::Cancelled, usage, Answered::default());
        }
        self.state = State::Failed(End::new(ErrorKind::Cancelled, "the caller cancelled the request"));
    }
}

/// The maximum number of paths that the message of an error lists.
const MAX_UNSTATED: usize = 5;

/// Returns a path as it is written in messages.
fn place(path: &JsonPath) -> String {
    let mut text = String::new();
    write_place(path, &mut text);
    text
}

/// Returns the class and message of the error for a failure.
fn explain(failure: &Failure, attempts: u32, repeated: bool) -> (ErrorKind, String) {
    let plural = if attempts == 1 { "attempt" } else { "attempts" };
    // A policy may stop early because of a repeated answer.
    let repeated = if repeated { ", the last with the same answer as the one before" } else { "" };
    match failure {
        Failure::Fault(fault) => {
            let kind = match fault.kind {
                FaultKind::SchemaRefused => ErrorKind::Schema,
                FaultKind::BadRequest | FaultKind::Unsupported => ErrorKind::Config,
                _ => ErrorKind::Unavailable,
            };
            let wait =
                fault.retry_after.map(|wait| format!("; the server asks to wait {} s", wait.as_secs()));
            (kind, format!("{fault}{}", wait.unwrap_or_default()))
        }
        Failure::Refused { reason } if reason.is_empty() => {
            (ErrorKind::Refused, "it gave no reason".to_owned())
        }
        Failure::Refused { reason } => (ErrorKind::Refused, reason.clone()),
        other => {
            let first = other.violations().first().map(Violation::masked).unwrap_or_default();
            let more = match other.total() {
                0 | 1 => String::new(),
                n => format!(" (and {} more)", n - 1),
            };
            (ErrorKind::Rejected, format!("after {attempts} {plural}{repeated}: {first}{more}"))
        }
    }
}

/// Returns the message for a call that a budget does not allow, with the smallest amount that allows it and the rest of the budget.
pub(super) fn over_budget(needed: Cost, left: Option<Cost>) -> String {
    let numbers = left.and_then(|left| match (needed.micro_usd, left.micro_usd) {
        (Some(needed), Some(left)) if needed > left => {
            Some(format!(": it needs at least {}, and {} is left", dollars(needed), dollars(left)))
        }
        _ if needed.tokens > left.tokens => {
            Some(format!(": it needs at least {} tokens, and {} are left", needed.tokens, left.tokens))
        }
        _ => None,
    });
    format!("the budget does not allow another call{}", numbers.unwrap_or_default())
}

/// Millionths of a dollar as people write them: `$0.05`, `$0.000123`.
fn dollars(micro: u64) -> String {
    let text = format!("{}.{:06}", micro / 1_000_000, micro % 1_000_000);
    let cents = text.len() - 4;
    let (sure, rest) = text.split_at(cents);
    format!("${sure}{}", rest.trim_end_matches('0'))
}

/// The warning that a dialect was left out because it cannot take the schema.
fn skipped(dialect: &str, reason: &Refused) -> Warning {
    Warning::new(
        WarningKind::Lowering,
        format!("the output mode `{dialect}` was skipped: {reason}; a weaker one was used"),
    )
}
