//! Observes which output modes of a target work, and changes to one that does.

use std::time::Duration;

use super::{Run, State};
#[cfg(doc)]
use crate::Tighten;
use crate::feedback::cut_bytes;
use crate::{Ask, Failure, Finish, Observation, ObservationKind, Plan, SamplingParameter, Time};

/// The rule of the violation that [`Watch`](crate::Watch) reports.
const RUNAWAY: &str = "runaway";

/// The time before the deadline in which an answer counts as cut off by the deadline instead of the token limit.
const LATE: Duration = Duration::from_millis(100);

/// The evidence of an answer about the bounds of the schema.
#[derive(Debug)]
pub(super) enum Bounding {
    /// It ran away without bounds, for this reason.
    RanAway(String),
    /// It filled a bound.
    Full,
    /// It was complete without bounds, although an earlier answer ran away.
    Completed,
}

/// The maximum length of a reason in bytes: a server's message about a schema may quote all of it.
const MAX_REASON: usize = 300;

impl Run {
    /// Sets the output mode in which each target starts, in the plan's order (default: 0, the strictest). With the modes
    /// that earlier runs ended in, the run saves the calls that showed which modes fail.
    ///
    /// A target without a number starts in mode 0, and a number that is too high means the last mode. If the method is
    /// called several times, the higher number counts. No effect after the first step.
    pub fn with_start_modes(mut self, modes: impl IntoIterator<Item = usize>) -> Self {
        if self.started.is_some() {
            return self;
        }
        self.position.start_at(modes);
        self
    }

    /// Sends a [bounded](Tighten::Bounded) schema to these targets, by their indexes in the plan, from the first call on
    /// (default: to none), because in earlier runs they ran away with this schema.
    ///
    /// A target whose schema is never bounded is not affected. No effect after the first step.
    pub fn with_bounded(mut self, targets: impl IntoIterator<Item = usize>) -> Self {
        if self.started.is_none() {
            self.position.run_away.extend(targets);
        }
        self
    }

    /// Skips these targets, by their indexes in the plan, until a time each, as long as there is another target (default:
    /// none), because earlier runs found them out of service. No effect after the first step.
    pub fn with_out_of_service(mut self, targets: impl IntoIterator<Item = (usize, Time)>) -> Self {
        if self.started.is_none() {
            self.position.out_of_service.extend(targets);
        }
        self
    }

    /// Leaves these parameters of sampling (default: none) out of the calls of these targets, by their places in the plan:
    /// earlier runs found them refused. Without effect once the run has made its first step.
    pub fn with_refused_sampling(
        mut self,
        refused: impl IntoIterator<Item = (usize, SamplingParameter)>,
    ) -> Self {
        if self.started.is_none() {
            self.position.refused_sampling.extend(refused);
        }
        self
    }

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
        failure: Option<&Failure>,
    ) -> Option<Bounding> {
        let State::Calling { call, .. } = &self.state else { return None };
        if self.request.ask != Ask::Whole || !self.position.may_bound(plan) || self.is_late(plan, now) {
            return None;
        }
        if !call.lowered.bounds.is_empty() {
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
        self.position.starts_bounded()
            || observations.any(|observation| {
                observation.target == self.position.target && observation.kind == ObservationKind::RanAway
            })
    }

    /// Applies the evidence about the bounds of the schema to the next call, and records the observation.
    pub(super) fn set_bounded(&mut self, plan: &Plan, bounding: Bounding) {
        match bounding {
            Bounding::Full => self.position.bounded = false,
            Bounding::Completed => self.learn(plan, ObservationKind::Completed, String::new()),
            Bounding::RanAway(reason) => {
                self.position.bounded = true;
                self.learn(plan, ObservationKind::RanAway, reason);
            }
        }
    }

    /// Changes to the next mode because the target refused the schema; returns `false` if there is none.
    pub(super) fn was_refused(&mut self, plan: &Plan, reason: &str) -> bool {
        // A patch has a schema of its own, whose refusal is no evidence about the contract's.
        if self.request.ask == Ask::Whole {
            self.learn(plan, ObservationKind::Refused, cut_bytes(reason, MAX_REASON));
        }
        self.position.lower_mode(plan)
    }

    /// The last call failed because of a parameter of sampling: leaves it out from now on.
    pub(super) fn was_refused_sampling(&mut self, plan: &Plan, parameter: SamplingParameter, reason: &str) {
        self.learn(plan, ObservationKind::RefusedSampling(parameter), cut_bytes(reason, MAX_REASON));
        self.position.refused_sampling.extend([(self.position.target, parameter)]);
    }

    /// The last answer proves that the target ignored the schema: goes down to the first mode of another mode.
    ///
    /// Another dialect with the same enforcement would be ignored as well. The observation is recorded once per target: if
    /// no weaker mode is left, every further answer would prove the same.
    pub(super) fn was_ignored(&mut self, plan: &Plan, proof: String) {
        let known = |observation: &Observation| {
            observation.kind == ObservationKind::Ignored && observation.target == self.position.target
        };
        if self.observations().any(known) {
            return;
        }
        self.learn(plan, ObservationKind::Ignored, proof);
        self.position.leave_schema_mode(plan);
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
