use serde::{Deserialize, Serialize};

use super::service::Service;
use super::{Size, Thresholds};
use crate::{Fault, SamplingParameter, Time};

/// The answers of [`Health`](crate::Health) to the questions of a run: which target, which output mode, which bounds.
///
/// A driver passes it to [`Run::set_advice`](crate::Run::set_advice). The default advice is that of a process without
/// observations.
///
/// ```
/// use formwork_core::{Advice, TargetAdvice};
///
/// let weaker = TargetAdvice::default().with_start_mode(1);
/// let advice = Advice::new([weaker, TargetAdvice::default()]);
/// # let _ = advice;
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[must_use]
pub struct Advice {
    pub(crate) targets: Vec<TargetAdvice>,
    pub(crate) thresholds: Thresholds,
    /// Whether the run ends where it would wait for a target that cannot be reached.
    pub(crate) fails_fast: bool,
}

/// The part of an [`Advice`] about one target.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[must_use]
pub struct TargetAdvice {
    pub(crate) start_mode: usize,
    /// The reason why the target starts in a weaker mode than the first one.
    pub(crate) weaker_because: Option<String>,
    /// Whether the start mode is tried again although the server ignored the schema: a first answer without enforcement ends
    /// the trial.
    pub(crate) is_trial: bool,
    pub(crate) is_bounded: bool,
    pub(crate) longest: Size,
    pub(crate) refused_sampling: Vec<SamplingParameter>,
    pub(super) service: Service,
}

impl Advice {
    /// Creates an advice about the targets of a plan, in its order. Further targets have no observations.
    pub fn new(targets: impl IntoIterator<Item = TargetAdvice>) -> Self {
        Self { targets: targets.into_iter().collect(), ..Self::default() }
    }

    /// Ends the run where it would wait for a target that cannot be reached (default: it waits): at once if every target is
    /// out of service, and after a failed call that no other target can take.
    pub const fn with_fail_fast(mut self) -> Self {
        self.fails_fast = true;
        self
    }

    /// Returns the targets that are out of service, by their indexes in the plan, each with the end of that time.
    pub fn out_of_service(&self, now: Time) -> impl Iterator<Item = (usize, Time)> {
        let until = move |(index, target): (usize, &TargetAdvice)| Some((index, target.service.until(now)?));
        self.targets.iter().enumerate().filter_map(until)
    }

    pub(crate) fn target_mut(&mut self, target: usize) -> &mut TargetAdvice {
        if self.targets.len() <= target {
            self.targets.resize_with(target + 1, TargetAdvice::default);
        }
        &mut self.targets[target]
    }

    /// Records a failed call of this run.
    pub(crate) fn failed(&mut self, target: usize, fault: &Fault, now: Time) {
        let thresholds = self.thresholds;
        self.target_mut(target).service.failed(fault, now, &thresholds);
    }

    /// Records an answer of this run.
    pub(crate) fn answered(&mut self, target: usize) {
        let thresholds = self.thresholds;
        if let Some(target) = self.targets.get_mut(target) {
            target.service.answered(&thresholds);
        }
    }

    pub(crate) fn until(&self, target: usize, now: Time) -> Option<Time> {
        self.targets.get(target)?.service.until(now)
    }

    /// Changes the times from which on targets may be called again.
    pub(crate) fn move_times(&mut self, moved: impl Fn(Time) -> Time) {
        self.targets.iter_mut().for_each(|target| target.service.move_time(&moved));
    }
}

impl TargetAdvice {
    crate::setters! {
        /// Sets the index of the output mode in which the target starts (default: 0, the strictest). A number that is too high means
        /// the last mode.
        pub const fn with_start_mode(start_mode: usize);
        /// Makes the start mode a trial (default: it is none): after the first answer that enforcement of the schema makes
        /// impossible, or that is prose, the run continues in a mode without enforcement.
        pub const fn with_trial(is_trial = true);
        /// Sends the target a [bounded](crate::Tighten::Bounded) schema from the first call on (default: only after an answer that
        /// ran away). A target whose schema is never bounded is not affected.
        pub const fn with_bounds(is_bounded = true);
        /// Sets the size of the longest complete document, which bounds exceed (default: unknown).
        pub const fn with_longest(longest: Size);
    }

    /// Leaves these sampling parameters out (default: none).
    pub fn with_refused_sampling(mut self, refused: impl IntoIterator<Item = SamplingParameter>) -> Self {
        self.refused_sampling.extend(refused);
        self
    }

    /// Skips the target until a time, as long as there is another target (default: it is in service).
    pub fn with_out_of_service(mut self, until: Time) -> Self {
        self.service = Service::skipped_until(until);
        self
    }
}
