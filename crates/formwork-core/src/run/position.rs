//! Which target is asked, in which of its dialects, and whether its schema is bounded.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::plan::Mode;
use crate::{Enforcement, Plan, SamplingParameter, Target, Tighten, Time};

/// The target in use and the way of asking it. Targets only advance, and within one no dialect is taken again once a later one
/// is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Position {
    target: usize,
    mode: usize,
    /// The mode that each target is first asked on; the strictest where nothing is said.
    starts: Vec<usize>,
    /// The targets that start with a bounded schema.
    run_away: Vec<usize>,
    /// Whether the schema is bounded for the target in use, beyond what the plan says.
    bounded: bool,
    /// The targets that other runs found out of service, each with the time from which on it may be asked again.
    out_of_service: Vec<(usize, Time)>,
    /// The parameters of sampling that targets refused.
    #[serde(default)]
    refused_sampling: Vec<(usize, SamplingParameter)>,
}

impl Position {
    /// The index of the target in use.
    pub(super) const fn target(&self) -> usize {
        self.target
    }

    /// The index of the dialect among those of the target.
    pub(super) const fn mode(&self) -> usize {
        self.mode
    }

    /// The target in use, as the plan has it.
    pub(super) fn target_of<'p>(&self, plan: &'p Plan) -> Option<&'p Target> {
        plan.targets.get(self.target)
    }

    /// The dialect in use, as the plan has it.
    pub(super) fn mode_of<'p>(&self, plan: &'p Plan) -> Option<&'p Mode> {
        self.target_of(plan)?.modes.get(self.mode)
    }

    /// Starts each target, in the plan's order, on this mode of its own. Of what was said before, the higher mode counts.
    pub(super) fn start_at(&mut self, modes: impl IntoIterator<Item = usize>) {
        for (target, mode) in modes.into_iter().enumerate() {
            match self.starts.get_mut(target) {
                Some(start) => *start = mode.max(*start),
                None => self.starts.push(mode),
            }
        }
    }

    /// Starts these targets with a bounded schema.
    pub(super) fn start_bounded(&mut self, targets: impl IntoIterator<Item = usize>) {
        self.run_away.extend(targets);
    }

    /// Leaves these targets out until then, as long as there is another one.
    pub(super) fn leave_out(&mut self, targets: impl IntoIterator<Item = (usize, Time)>) {
        self.out_of_service.extend(targets);
    }

    /// Leaves these parameters of sampling out of the calls of these targets.
    pub(super) fn leave_sampling_out(
        &mut self,
        refused: impl IntoIterator<Item = (usize, SamplingParameter)>,
    ) {
        self.refused_sampling.extend(refused);
    }

    /// Whether the target in use refused a parameter of sampling.
    pub(super) fn leaves_out(&self, parameter: SamplingParameter) -> bool {
        self.refused_sampling.contains(&(self.target, parameter))
    }

    /// Takes the first target that is in service; the first of all if none is.
    pub(super) fn enter_first(&mut self, plan: &Plan, now: Time) {
        let in_service = |target: &usize| self.time_until(*target, now).is_zero();
        self.target = (0..plan.targets.len()).find(in_service).unwrap_or_default();
        self.enter(plan);
    }

    /// The later target that is in service first, and the time until then; of several the first one. `None` if the target in
    /// use is the last.
    pub(super) fn next(&self, plan: &Plan, now: Time) -> Option<(usize, Duration)> {
        (self.target + 1..plan.targets.len())
            .map(|target| (target, self.time_until(target, now)))
            .min_by_key(|(_, wait)| *wait)
    }

    fn time_until(&self, target: usize, now: Time) -> Duration {
        let out = self.out_of_service.iter().filter(|(other, _)| *other == target);
        out.map(|(_, until)| until.since(now)).max().unwrap_or_default()
    }

    /// Takes the mode that the target in use is first asked on, and what is known of how it has to be bounded.
    pub(super) fn enter(&mut self, plan: &Plan) {
        let modes = self.target_of(plan).map_or(0, |target| target.modes.len());
        self.mode = self.starts.get(self.target).copied().unwrap_or_default().min(modes.saturating_sub(1));
        self.bounded = self.starts_bounded() && self.may_bound(plan);
    }

    /// Goes on to a later target; `false` if it is none.
    pub(super) fn advance(&mut self, plan: &Plan, to: usize) -> bool {
        if to <= self.target || to >= plan.targets.len() {
            return false;
        }
        self.target = to;
        self.enter(plan);
        true
    }

    /// Goes on to the next dialect of the target; `false` if there is none.
    pub(super) fn lower_mode(&mut self, plan: &Plan) -> bool {
        let is_lower = self.target_of(plan).is_some_and(|target| self.mode + 1 < target.modes.len());
        self.mode += usize::from(is_lower);
        is_lower
    }

    /// Goes on to the first dialect of the target that promises less than to keep to a schema, if there is one.
    pub(super) fn leave_schema_mode(&mut self, plan: &Plan) {
        let modes = self.target_of(plan).map(|target| target.modes.as_slice()).unwrap_or_default();
        let weaker =
            |mode: &usize| modes.get(*mode).is_some_and(|mode| mode.whole.enforcement < Enforcement::Schema);
        if let Some(mode) = (self.mode + 1..modes.len()).find(weaker) {
            self.mode = mode;
        }
    }

    /// Which answers the schema of the next call may exclude.
    pub(super) fn tighten(&self, plan: &Plan) -> Tighten {
        let own = self.target_of(plan).map(|target| target.tighten).unwrap_or_default();
        if self.bounded { own.max(Tighten::Bounded) } else { own }
    }

    /// Whether a bounded schema is a remedy for the target in use: it decodes within the schema, it does not keep the limit of
    /// tokens by itself, and nobody has decided about bounds.
    pub(super) fn may_bound(&self, plan: &Plan) -> bool {
        let Some(target) = self.target_of(plan) else { return false };
        let is_held = self.mode_of(plan).is_some_and(|mode| mode.whole.enforcement == Enforcement::Schema);
        is_held && target.tighten == Tighten::Closed && !target.capabilities.keeps_limit
    }

    /// Whether an earlier run saw the target in use run away with the schema.
    pub(super) fn starts_bounded(&self) -> bool {
        self.run_away.contains(&self.target)
    }

    /// Whether the schema is bounded beyond what the plan says.
    pub(super) const fn is_bounded(&self) -> bool {
        self.bounded
    }

    /// Bounds the schema from the next call on, or leaves it as it is.
    pub(super) const fn bound(&mut self, bounded: bool) {
        self.bounded = bounded;
    }
}
