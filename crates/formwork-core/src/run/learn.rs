//! What a run learns of its targets, and which rung of theirs it goes on with.

use super::{Run, State};
use crate::feedback::cut_bytes;
use crate::{Ask, Enforcement, Failure, Finish, Lesson, LessonKind, Plan, Tighten, Time};

/// The rule that a stream breaks which repeats itself; see [`Watch`](crate::Watch).
const RUNAWAY: &str = "runaway";

/// What an answer says about the bounds of the schema.
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
    /// Starts each target, in the plan's order, on this rung of its own instead of the strictest: what earlier runs
    /// learnt spares this one the calls that taught it.
    ///
    /// A target that is not named starts on rung 0, a rung that is not there stands for the last. Of what was said
    /// before, the higher rung counts. Without effect once the run has made its first step.
    #[must_use]
    pub fn with_start_rungs(mut self, rungs: impl IntoIterator<Item = usize>) -> Self {
        if self.started.is_some() {
            return self;
        }
        for (target, rung) in rungs.into_iter().enumerate() {
            match self.starts.get_mut(target) {
                Some(start) => *start = rung.max(*start),
                None => self.starts.push(rung),
            }
        }
        self
    }

    /// Sends these targets, by their places in the plan, a [bounded](Tighten::Bounded) schema from the first call on: earlier
    /// runs saw that they run away with this one.
    ///
    /// A target whose schema is never bounded stays as it is. Without effect once the run has made its first step.
    #[must_use]
    pub fn with_bounded(mut self, targets: impl IntoIterator<Item = usize>) -> Self {
        if self.started.is_none() {
            self.run_away.extend(targets);
        }
        self
    }

    /// What it learnt of its targets, in order. Each lesson stands in the attempt that taught it.
    pub fn lessons(&self) -> impl Iterator<Item = &Lesson> {
        self.ledger.iter().filter_map(|attempt| attempt.lesson.as_deref())
    }

    /// Takes the rung that the target in use is first asked on, and what is known of how it has to be bounded.
    pub(super) fn enter_target(&mut self, plan: &Plan) {
        let rungs = plan.targets.get(self.target).map_or(0, |target| target.rungs.len());
        self.rung = self.starts.get(self.target).copied().unwrap_or_default().min(rungs.saturating_sub(1));
        self.bounded = self.run_away.contains(&self.target) && self.may_bound(plan);
    }

    /// Returns which answers the schema of the next call may exclude.
    pub(super) fn tighten(&self, plan: &Plan) -> Tighten {
        let own = plan.targets.get(self.target).map(|target| target.tighten).unwrap_or_default();
        if self.bounded { own.max(Tighten::Bounded) } else { own }
    }

    /// Returns whether a bounded schema is a remedy for the target in use: it decodes within the schema, it does not keep
    /// the limit of tokens by itself, and nobody has decided about bounds.
    fn may_bound(&self, plan: &Plan) -> bool {
        let Some(target) = plan.targets.get(self.target) else { return false };
        let is_held =
            target.rungs.get(self.rung).is_some_and(|rung| rung.whole.enforcement == Enforcement::Schema);
        is_held && target.tighten == Tighten::Closed && !target.capabilities.keeps_limit
    }

    /// Returns what an answer says about the bounds of the schema, if it says anything.
    pub(super) fn bounding(
        &self,
        plan: &Plan,
        now: Time,
        finish: Finish,
        failure: Option<&Failure>,
    ) -> Option<Bounding> {
        let is_late = self.deadline(plan).is_some_and(|deadline| now >= deadline);
        let State::Calling { call, .. } = &self.state else { return None };
        if self.asked != Ask::Whole || !self.may_bound(plan) || is_late {
            return None;
        }
        if !call.lowered.bounds.is_empty() {
            // An answer that is full at a bound and ended by itself: without the bounds it may have gone on to its end.
            let is_full = matches!(failure, Some(Failure::Truncated { .. })) && finish == Finish::Stop;
            return is_full.then_some(Bounding::Full);
        }
        if self.bounded {
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
        let mut lessons = self.lessons();
        self.run_away.contains(&self.target)
            || lessons.any(|lesson| lesson.target == self.target && lesson.kind == LessonKind::RanAway)
    }

    /// Bounds the schema of the next call, or leaves it as it is again.
    pub(super) fn set_bounded(&mut self, plan: &Plan, bounding: Bounding) {
        match bounding {
            Bounding::Full => self.bounded = false,
            Bounding::Completed => self.learn(plan, LessonKind::Completed, String::new()),
            Bounding::RanAway(reason) => {
                self.bounded = true;
                self.learn(plan, LessonKind::RanAway, reason);
            }
        }
    }

    /// The last call failed because its schema was refused: goes one rung down, if there is one.
    pub(super) fn was_refused(&mut self, plan: &Plan, reason: &str) -> bool {
        // A patch has a schema of its own, which says nothing about the contract's.
        if self.asked == Ask::Whole {
            self.learn(plan, LessonKind::Refused, cut_bytes(reason, MAX_REASON));
        }
        let rungs = plan.targets.get(self.target).map_or(0, |target| target.rungs.len());
        let is_lower = self.rung + 1 < rungs;
        if is_lower {
            self.rung += 1;
        }
        is_lower
    }

    /// The last answer proves that the target ignored the schema: goes down to the first rung of another mode.
    ///
    /// Another dialect of the same mode would be ignored as well. Said once for each target: where no other mode is
    /// left, every further answer would prove the same.
    pub(super) fn was_ignored(&mut self, plan: &Plan, proof: String) {
        let known = |lesson: &Lesson| lesson.kind == LessonKind::Ignored && lesson.target == self.target;
        if self.lessons().any(known) {
            return;
        }
        self.learn(plan, LessonKind::Ignored, proof);
        let rungs = plan.targets.get(self.target).map(|target| target.rungs.as_slice()).unwrap_or_default();
        let weaker =
            |rung: &usize| rungs.get(*rung).is_some_and(|rung| rung.whole.enforcement < Enforcement::Schema);
        if let Some(rung) = (self.rung + 1..rungs.len()).find(weaker) {
            self.rung = rung;
        }
    }

    /// Writes a lesson into the last attempt.
    fn learn(&mut self, plan: &Plan, kind: LessonKind, reason: String) {
        let (target, rung) = (self.target, self.rung);
        if let Some(last) = self.ledger.last_mut() {
            let lesson = Lesson {
                target,
                name: last.target.clone(),
                schema: plan.schema_digest().to_owned(),
                rung,
                dialect: last.dialect.clone(),
                kind,
                reason,
            };
            last.lesson = Some(Box::new(lesson));
        }
    }
}
