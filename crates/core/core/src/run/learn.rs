//! Observes which output modes of a target work, and changes to one that does.

use std::time::Duration;

use super::closed::RUNAWAY;
use super::compliance::Proof;
use super::examine::Examined;
use super::{Run, State};
use crate::feedback::cut_bytes;
use crate::{
    Ask, Failure, Finish, Observation, ObservationKind, Plan, SamplingParameter, Shown, Time, Warning,
    WarningKind,
};

/// The time before the deadline in which an answer counts as cut off by the deadline instead of the token limit.
const LATE: Duration = Duration::from_millis(100);

/// The evidence of an answer about the bounds of the schema.
#[derive(Debug)]
pub(super) enum Bounding {
    /// It ran away without bounds, for this reason.
    RanAway(String),
    /// It filled a bound.
    Full,
    /// It exceeded a bound, which the server therefore does not enforce.
    Exceeded,
    /// It was complete without bounds, although an earlier answer ran away.
    Completed,
}

/// The maximum length of a reason in bytes: a server's message about a schema may quote all of it.
const MAX_REASON: usize = 300;

impl Run {
    /// Returns the observations about targets, in order. Each is stored in the record of the call that led to it.
    pub fn observations(&self) -> impl Iterator<Item = &Observation> {
        self.ledger.iter().filter_map(|call| call.observation.as_deref())
    }

    /// Returns whether an answer that ended now was cut off by the deadline.
    pub(super) fn is_late(&self, plan: &Plan, now: Time) -> bool {
        self.deadline(plan).is_some_and(|deadline| now.after(LATE) >= deadline)
    }

    /// Returns the evidence of an answer about the bounds of the schema, if any.
    pub(super) fn bounding(
        &self,
        plan: &Plan,
        now: Time,
        finish: &Finish,
        examined: &Examined,
    ) -> Option<Bounding> {
        let State::Calling { call, .. } = &self.state else { return None };
        let failure = examined.failure.as_ref();
        let is_first = self.request.ask == Ask::Whole && self.request.prefix.is_none();
        if !is_first || !self.position.may_bound(plan) || self.is_late(plan, now) {
            return None;
        }
        if !call.lowered.bounds.is_empty() {
            if examined.exceeds_bound {
                return Some(Bounding::Exceeded);
            }
            // The answer filled a bound and ended by itself: without the bounds it may have been completed.
            let is_full = matches!(failure, Some(Failure::Truncated { .. })) && *finish == Finish::Stop;
            return is_full.then_some(Bounding::Full);
        }
        if self.position.bounded {
            // This schema has nothing to bound.
            return None;
        }
        match failure {
            Some(Failure::Truncated { .. }) if *finish == Finish::Length => {
                Some(Bounding::RanAway("the limit of tokens".to_owned()))
            }
            Some(Failure::Stopped { violations }) => {
                let runaway = violations.iter().find(|violation| violation.rule == RUNAWAY)?;
                Some(Bounding::RanAway(runaway.masked()))
            }
            None if *finish == Finish::Stop && self.ran_away_before() => Some(Bounding::Completed),
            _ => None,
        }
    }

    /// Returns whether an answer of the current target ran away with the schema, in this or an earlier run.
    fn ran_away_before(&self) -> bool {
        let mut observations = self.observations();
        self.position.advised().is_some_and(|advice| advice.is_bounded)
            || observations.any(|observation| {
                observation.target == self.position.target && observation.kind == ObservationKind::RanAway
            })
    }

    /// Applies the evidence about the bounds of the schema to the next call, and records the observation.
    pub(super) fn set_bounded(&mut self, plan: &Plan, bounding: Bounding) {
        match bounding {
            Bounding::Full | Bounding::Exceeded => self.position.bounded = false,
            Bounding::Completed => self.learn(plan, ObservationKind::Completed, String::new()),
            Bounding::RanAway(reason) => {
                self.position.bounded = true;
                self.learn(plan, ObservationKind::RanAway, reason);
            }
        }
    }

    /// Changes to the next mode because the target refused the schema; returns `false` if there is none.
    pub(super) fn was_refused(&mut self, plan: &Plan, now: Time, reason: &str) -> bool {
        // A patch has a schema of its own, whose refusal is no evidence about the contract's.
        if self.request.ask == Ask::Whole {
            let reason = cut_bytes(reason, MAX_REASON);
            let dialect = self.ledger.last().map(|call| call.dialect.clone()).unwrap_or_default();
            self.show_refusal(plan, now, Shown::SchemaRefused { dialect, reason: reason.clone() });
            self.learn(plan, ObservationKind::Refused, reason);
        }
        self.position.lower_mode(plan)
    }

    /// The last call failed because of a parameter of sampling: leaves it out from now on.
    pub(super) fn was_refused_sampling(
        &mut self,
        plan: &Plan,
        now: Time,
        parameter: SamplingParameter,
        reason: &str,
    ) {
        let reason = cut_bytes(reason, MAX_REASON);
        self.show_refusal(plan, now, Shown::SamplingRefused { parameter, reason: reason.clone() });
        self.learn(plan, ObservationKind::RefusedSampling(parameter), reason);
        let target = self.position.target;
        self.position.advice.target_mut(target).refused_sampling.push(parameter);
    }

    /// Records that the last answer proves that the target did not enforce the schema. After a document that enforcement makes
    /// impossible, and in a trial of a mode that failed before, the run continues in the first mode without schema enforcement:
    /// another dialect with the same enforcement would be ignored as well. After prose the mode stays, because a model that
    /// declines to answer may write it past the enforcement.
    ///
    /// Each kind of observation is recorded once per target: if no weaker mode is left, every further answer would prove the same.
    pub(super) fn was_ignored(&mut self, plan: &Plan, proof: Proof, is_accepted: bool) {
        let (kind, proof, steps_down) = match proof {
            Proof::Impossible(proof) => (ObservationKind::Ignored, proof, true),
            Proof::Prose(proof) => (ObservationKind::Prose, proof, self.position.is_trial()),
        };
        let known = |observation: &Observation| {
            observation.kind == kind && observation.target == self.position.target
        };
        if !self.observations().any(known) {
            self.learn(plan, kind, proof);
        }
        // The warnings of an accepted answer are about the mode that gave it.
        if steps_down && !is_accepted {
            self.position.leave_schema_mode(plan);
        }
    }

    /// Returns the warning that the current output mode enforces less than the first one of the target, with the reason.
    pub(super) fn weaker_mode(&self, plan: &Plan) -> Option<Warning> {
        let [first, mode] = [self.position.target_of(plan)?.modes.first()?, self.position.mode_of(plan)?];
        if mode.whole.enforcement >= first.whole.enforcement {
            return None;
        }
        let of_target = |observation: &&Observation| {
            use ObservationKind::{Ignored, Prose, Refused};
            observation.target == self.position.target
                && matches!(observation.kind, Ignored | Prose | Refused)
        };
        let own = self.observations().filter(of_target).last().map(|observation| &observation.reason);
        let known = || self.position.advised()?.weaker_because.as_ref();
        let reason = own.or_else(known).map(|reason| format!(": {reason}")).unwrap_or_default();
        let (mode, first) = (mode.lower.name(), first.lower.name());
        let message =
            format!("the answer was produced in the output mode `{mode}` instead of `{first}`{reason}");
        Some(Warning::new(WarningKind::WeakerMode, message))
    }

    /// Adds an observation to the record of the last call.
    fn learn(&mut self, plan: &Plan, kind: ObservationKind, reason: String) {
        let (target, mode) = (self.position.target, self.position.mode);
        if let Some(last) = self.ledger.last_mut() {
            let observation = Observation {
                target,
                name: last.target.clone(),
                schema: plan.schema_digest().to_owned(),
                mode,
                dialect: last.dialect.clone(),
                kind,
                reason,
            };
            last.observation = Some(Box::new(observation));
        }
    }
}
