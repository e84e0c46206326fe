//! Learns from answers which ways of asking a target work, and goes on with one that does.

use std::time::Duration;

use super::{Run, State};
#[cfg(doc)]
use crate::Tighten;
use crate::feedback::cut_bytes;
use crate::{Ask, Failure, Finish, Observation, ObservationKind, Plan, SamplingParameter, Time};

/// The rule that a stream breaks which repeats itself; see [`Watch`](crate::Watch).
const RUNAWAY: &str = "runaway";

/// How long before the deadline an answer may have been cut by that instead of the limit of tokens.
const LATE: Duration = Duration::from_millis(100);

/// The evidence of an answer about the bounds of the schema.
#[derive(Debug)]
pub(super) enum Bounding {
    /// It ran away without bounds, and how.
    RanAway(String),
    /// It was full at a bound.
    Full,
    /// It was complete without bounds, where an earlier one had run away.
    Completed,
}

/// The most bytes of a reason: a server's words about a schema may quote all of it.
const MAX_REASON: usize = 300;

impl Run {
    /// Starts each target, in the plan's order, on this mode of its own (default: the strictest): what earlier runs
    /// learnt spares this one the calls that taught it.
    ///
    /// A target that is not named starts on mode 0, a mode that is not there stands for the last. Of what was said
    /// before, the higher mode counts. Without effect once the run has made its first step.
    #[must_use]
    pub fn with_start_modes(mut self, modes: impl IntoIterator<Item = usize>) -> Self {
        if self.started.is_some() {
            return self;
        }
        self.position.start_at(modes);
        self
    }

    /// Sends these targets, by their places in the plan, a [bounded](Tighten::Bounded) schema from the first call on
    /// (default: none): earlier runs saw that they run away with this one.
    ///
    /// A target whose schema is never bounded stays as it is. Without effect once the run has made its first step.
    #[must_use]
    pub fn with_bounded(mut self, targets: impl IntoIterator<Item = usize>) -> Self {
        if self.started.is_none() {
            self.position.start_bounded(targets);
        }
        self
    }

    /// Leaves these targets (default: none), by their places in the plan, out until the time beside each, as long as there
    /// is another one: earlier runs found them out of service. Without effect once the run has made its first step.
    #[must_use]
    pub fn with_out_of_service(mut self, targets: impl IntoIterator<Item = (usize, Time)>) -> Self {
        if self.started.is_none() {
            self.position.leave_out(targets);
        }
        self
    }

    /// Leaves these parameters of sampling (default: none) out of the calls of these targets, by their places in the plan:
    /// earlier runs found them refused. Without effect once the run has made its first step.
    #[must_use]
    pub fn with_refused_sampling(
        mut self,
        refused: impl IntoIterator<Item = (usize, SamplingParameter)>,
    ) -> Self {
        if self.started.is_none() {
            self.position.leave_sampling_out(refused);
        }
        self
    }

    /// Returns what it learnt of its targets, in order. Each observation stands in the attempt that taught it.
    pub fn observations(&self) -> impl Iterator<Item = &Observation> {
        self.ledger.iter().filter_map(|attempt| attempt.observation.as_deref())
    }

    /// Returns whether an answer that was cut off at this moment was cut off by the deadline.
    pub(super) fn is_late(&self, plan: &Plan, now: Time) -> bool {
        self.deadline(plan).is_some_and(|deadline| now.after(LATE) >= deadline)
    }

    /// Returns what an answer says about the bounds of the schema, if it says anything.
    pub(super) fn bounding(
        &self,
        plan: &Plan,
        now: Time,
        finish: Finish,
        failure: Option<&Failure>,
    ) -> Option<Bounding> {
        let State::Calling { call, .. } = &self.state else { return None };
        if *self.request.asked() != Ask::Whole || !self.position.may_bound(plan) || self.is_late(plan, now) {
            return None;
        }
        if !call.lowered.bounds.is_empty() {
            // An answer that is full at a bound and ended by itself: without the bounds it may have gone on to its end.
            let is_full = matches!(failure, Some(Failure::Truncated { .. })) && finish == Finish::Stop;
            return is_full.then_some(Bounding::Full);
        }
        if self.position.is_bounded() {
            // There is nothing to bound in this schema.
            return None;
        }
        match failure {
            Some(Failure::Truncated { .. }) if finish == Finish::Length => {
                Some(Bounding::RanAway("the limit of tokens".to_owned()))
            }
            Some(Failure::Stopped { violations }) => {
                let runaway = violations.iter().find(|violation| violation.rule == RUNAWAY)?;
                Some(Bounding::RanAway(runaway.masked()))
            }
            None if finish == Finish::Stop && self.ran_away_before() => Some(Bounding::Completed),
            _ => None,
        }
    }

    /// Returns whether this or an earlier run saw the target in use run away with the schema.
    fn ran_away_before(&self) -> bool {
        let mut observations = self.observations();
        self.position.starts_bounded()
            || observations.any(|observation| {
                observation.target == self.position.target() && observation.kind == ObservationKind::RanAway
            })
    }

    /// Bounds the schema of the next call, or leaves it as it is again.
    pub(super) fn set_bounded(&mut self, plan: &Plan, bounding: Bounding) {
        match bounding {
            Bounding::Full => self.position.bound(false),
            Bounding::Completed => self.learn(plan, ObservationKind::Completed, String::new()),
            Bounding::RanAway(reason) => {
                self.position.bound(true);
                self.learn(plan, ObservationKind::RanAway, reason);
            }
        }
    }

    /// The last call failed because its schema was refused: goes one mode down, if there is one.
    pub(super) fn was_refused(&mut self, plan: &Plan, reason: &str) -> bool {
        // A patch has a schema of its own, which says nothing about the contract's.
        if *self.request.asked() == Ask::Whole {
            self.learn(plan, ObservationKind::Refused, cut_bytes(reason, MAX_REASON));
        }
        self.position.lower_mode(plan)
    }

    /// The last call failed because of a parameter of sampling: leaves it out from now on.
    pub(super) fn was_refused_sampling(&mut self, plan: &Plan, parameter: SamplingParameter, reason: &str) {
        self.learn(plan, ObservationKind::RefusedSampling(parameter), cut_bytes(reason, MAX_REASON));
        self.position.leave_sampling_out([(self.position.target(), parameter)]);
    }

    /// The last answer proves that the target ignored the schema: goes down to the first mode of another mode.
    ///
    /// Another dialect of the same mode would be ignored as well. Said once for each target: where no other mode is
    /// left, every further answer would prove the same.
    pub(super) fn was_ignored(&mut self, plan: &Plan, proof: String) {
        let known = |observation: &Observation| {
            observation.kind == ObservationKind::Ignored && observation.target == self.position.target()
        };
        if self.observations().any(known) {
            return;
        }
        self.learn(plan, ObservationKind::Ignored, proof);
        self.position.leave_schema_mode(plan);
    }

    /// Writes a observation into the last attempt.
    fn learn(&mut self, plan: &Plan, kind: ObservationKind, reason: String) {
        let (target, mode) = (self.position.target(), self.position.mode());
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
