//! Adds calls to the ledger.

use std::sync::Arc;

use formwork_json::{Edit, JsonPath};

use super::{Run, State};
use crate::log_prob::LogProbs;
use crate::{Ask, CallRecord, CallResult, Finish, Original, Plan, Time, Usage};

/// The parts of a ledger entry that come from the answer; the default is a call without an answer.
#[derive(Default)]
pub(super) struct Answered {
    pub(super) text: Arc<str>,
    pub(super) log_probs: LogProbs,
    pub(super) original: Option<Box<Original>>,
    pub(super) notes: Vec<String>,
    pub(super) model: Option<String>,
    pub(super) finish: Option<Finish>,
    pub(super) edits: Vec<Edit>,
    pub(super) closed: Vec<JsonPath>,
    pub(super) restrained: bool,
}

impl Run {
    /// Adds a call to the ledger.
    pub(super) fn enter(
        &mut self,
        plan: &Plan,
        now: Time,
        verdict: CallResult,
        usage: Usage,
        answer: Answered,
    ) {
        let State::Calling { call, skipped, since, .. } = &self.state else { return };
        let Some(target) = self.position.target_of(plan) else { return };
        let Answered { text, log_probs, original, notes, model, finish, edits, closed, restrained } = answer;
        self.position.called = true;
        self.evidence.extend(self.before.take().and_then(|before| before.last_evidence));
        let cost = target.cost(usage);
        self.counters.spend(cost);
        // Most runs make one call. A list that grows by itself has place for four.
        self.ledger.reserve_exact(1);
        self.ledger.push(CallRecord {
            attempt: self.attempt(),
            target: target.name.clone(),
            dialect: self.position.mode_of(plan).map(|mode| mode.lower.name().to_owned()).unwrap_or_default(),
            enforcement: call.enforcement(),
            patched: if let Ask::Patch(paths) = &self.request.ask { paths.clone() } else { Vec::new() },
            sampling: call.sampling,
            skipped: skipped.clone(),
            started: *since,
            ended: now,
            text,
            log_probs,
            original,
            notes,
            model,
            finish,
            edits,
            closed,
            restrained,
            usage,
            cost,
            verdict,
            observation: None,
        });
    }
}
