//! What a run learns of its targets, and which rung of theirs it goes on with.

use super::Run;
use crate::feedback::cut_bytes;
use crate::{Ask, Enforcement, Lesson, LessonKind, Plan};

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

    /// What it learnt of its targets, in order. Each lesson stands in the attempt that taught it.
    pub fn lessons(&self) -> impl Iterator<Item = &Lesson> {
        self.ledger.iter().filter_map(|attempt| attempt.lesson.as_deref())
    }

    /// The rung that the target in use is first asked on.
    pub(super) fn first_rung(&self, plan: &Plan) -> usize {
        let rungs = plan.targets.get(self.target).map_or(0, |target| target.rungs.len());
        self.starts.get(self.target).copied().unwrap_or_default().min(rungs.saturating_sub(1))
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
