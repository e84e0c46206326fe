//! The current target, its output mode, and whether its schema is bounded.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::plan::Mode;
use crate::{
    Advice, Enforcement, Plan, SamplingParameter, Size, Target, TargetAdvice, Tighten, Time, Warning,
};

/// The current target and output mode. A target that was called and left is never entered again, and within a target no mode is
/// used again after a later one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Position {
    pub(super) target: usize,
    pub(super) mode: usize,
    /// Whether the current target was called since the run entered it.
    pub(super) called: bool,
    /// The highest index of a target that the run has entered.
    furthest: usize,
    /// The targets that a budget did not allow, and that were not called. The run may return to them.
    unpaid: Vec<usize>,
    /// Whether the schema is bounded for the current target, beyond the plan.
    pub(super) bounded: bool,
    /// Whether the schema of the last whole document had bounds beyond the plan.
    pub(super) has_bounds: bool,
    /// Whether the current target refused a patch.
    pub(super) refuses_patches: bool,
    /// The advice of earlier runs and this one about the targets.
    pub(super) advice: Advice,
    /// The warnings that a target was left for a cheaper one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) cheaper: Vec<Warning>,
}

impl Position {
    /// Returns the current target in the plan.
    pub(super) fn target_of<'p>(&self, plan: &'p Plan) -> Option<&'p Target> {
        plan.targets.get(self.target)
    }

    /// Returns the current mode in the plan.
    pub(super) fn mode_of<'p>(&self, plan: &'p Plan) -> Option<&'p Mode> {
        self.target_of(plan)?.modes.get(self.mode)
    }

    /// Returns the advice about the current target, if there is one.
    pub(super) fn advised(&self) -> Option<&TargetAdvice> {
        self.advice.targets.get(self.target)
    }

    /// Returns whether the current target refused a sampling parameter.
    pub(super) fn leaves_out(&self, parameter: SamplingParameter) -> bool {
        self.advised().is_some_and(|advice| advice.refused_sampling.contains(&parameter))
    }

    /// Returns whether the current output mode is tried again although the server ignored the schema in it.
    pub(super) fn is_trial(&self) -> bool {
        self.advised().is_some_and(|advice| advice.is_trial)
    }

    /// Takes the first target that is in service; the first of all if none is.
    pub(super) fn enter_first(&mut self, plan: &Plan, now: Time) {
        let in_service = |target: &usize| self.time_until(*target, now).is_zero();
        self.target = (0..plan.targets.len()).find(in_service).unwrap_or_default();
        self.enter(plan);
    }

    /// Returns the targets that the run may still enter: those after all that it has entered, then those that a budget did not
    /// allow.
    pub(super) fn open(&self, plan: &Plan) -> impl Iterator<Item = usize> {
        (self.target.max(self.furthest) + 1..plan.targets.len()).chain(self.unpaid.iter().copied())
    }

    /// Returns the [open](Self::open) target that is in service first, and the time until then; of equal ones the first.
    /// `None` if no target is open.
    pub(super) fn next(&self, plan: &Plan, now: Time) -> Option<(usize, Duration)> {
        self.open(plan).map(|target| (target, self.time_until(target, now))).min_by_key(|(_, wait)| *wait)
    }

    /// The time until the target in use is in service; `None` if it is.
    pub(super) fn wait(&self, now: Time) -> Option<Duration> {
        Some(self.time_until(self.target, now)).filter(|wait| !wait.is_zero())
    }

    fn time_until(&self, target: usize, now: Time) -> Duration {
        self.advice.until(target, now).map(|until| until.since(now)).unwrap_or_default()
    }

    /// Selects the first mode of the current target, and its bounds by earlier observations.
    pub(super) fn enter(&mut self, plan: &Plan) {
        self.refuses_patches = false;
        let modes = self.target_of(plan).map_or(0, |target| target.modes.len());
        let start = self.advised().map_or(0, |advice| advice.start_mode);
        self.mode = start.min(modes.saturating_sub(1));
        self.bounded = self.advised().is_some_and(|advice| advice.is_bounded) && self.may_bound(plan);
    }

    /// Enters another target; returns `false` if that is not [open](Self::open).
    pub(super) fn advance(&mut self, plan: &Plan, to: usize) -> bool {
        let is_open = self.open(plan).any(|target| target == to);
        if is_open {
            self.furthest = self.furthest.max(self.target).max(to);
            self.unpaid.retain(|target| *target != to);
            (self.target, self.called) = (to, false);
            self.enter(plan);
        }
        is_open
    }

    /// Enters another target because a budget does not allow the current one. The run may return to that unless it was called,
    /// and to the later targets before `to`.
    pub(super) fn advance_for_money(&mut self, plan: &Plan, to: usize) -> bool {
        let passed: Vec<usize> = self.open(plan).filter(|target| *target < to).collect();
        let own = Some(self.target).filter(|_| !self.called);
        let is_open = self.advance(plan, to);
        if is_open {
            self.unpaid.extend(passed.into_iter().chain(own));
            self.unpaid.sort_unstable();
            self.unpaid.dedup();
        }
        is_open
    }

    /// Advances to the next mode of the target; returns `false` if there is none.
    pub(super) fn lower_mode(&mut self, plan: &Plan) -> bool {
        let is_lower = self.target_of(plan).is_some_and(|target| self.mode + 1 < target.modes.len());
        self.mode += usize::from(is_lower);
        is_lower
    }

    /// Advances to the first mode of the target that is weaker than schema enforcement, if there is one.
    pub(super) fn leave_schema_mode(&mut self, plan: &Plan) {
        let modes = self.target_of(plan).map(|target| target.modes.as_slice()).unwrap_or_default();
        let weaker =
            |mode: &usize| modes.get(*mode).is_some_and(|mode| mode.whole.enforcement < Enforcement::Schema);
        if let Some(mode) = (self.mode + 1..modes.len()).find(weaker) {
            self.mode = mode;
        }
    }

    /// Returns the valid answers that lowering may exclude in the next call.
    pub(super) fn tighten(&self, plan: &Plan) -> Tighten {
        let own = self.target_of(plan).map(|target| target.tighten).unwrap_or_default();
        if self.bounded { own.max(Tighten::Bounded) } else { own }
    }

    /// Returns whether a bounded schema can help the current target: it enforces the schema while decoding, does not keep
    /// the token limit by itself, and its bounds are not configured.
    pub(super) fn may_bound(&self, plan: &Plan) -> bool {
        let Some(target) = self.target_of(plan) else { return false };
        let is_held = self.mode_of(plan).is_some_and(|mode| mode.whole.enforcement == Enforcement::Schema);
        is_held && target.tighten == Tighten::Closed && !target.capabilities.keeps_limit
    }

    /// Returns the lengths that bounds of the current target's schema exceed.
    pub(super) fn at_least(&self) -> Size {
        self.advised().map(|advice| advice.longest.exceeded()).unwrap_or_default()
    }
}
