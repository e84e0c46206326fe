//! How often the models were asked, and what it came to.

use serde::{Deserialize, Serialize};

use crate::Cost;

/// Everything that a policy or a limit counts. All but what failed in a row only grow until the next target or attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counters {
    attempts: u32,
    on_target: u32,
    patches: u32,
    faults: u32,
    spent: Cost,
}

impl Counters {
    /// Answers that count, over all targets.
    pub(super) const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Answers that count, of the target in use.
    pub(super) const fn on_target(&self) -> u32 {
        self.on_target
    }

    /// Patches since the last answer that counted.
    pub(super) const fn patches(&self) -> u32 {
        self.patches
    }

    /// Calls that failed in a row.
    pub(super) const fn faults(&self) -> u32 {
        self.faults
    }

    /// The cost of all calls and external steps.
    pub(super) const fn spent(&self) -> Cost {
        self.spent
    }

    /// Counts an answer: as an attempt, or as a patch within one.
    pub(super) const fn answered(&mut self, counts: bool) {
        if counts {
            self.attempts += 1;
            self.on_target += 1;
            self.patches = 0;
        } else {
            self.patches += 1;
        }
        self.faults = 0;
    }

    /// Counts a call that failed.
    pub(super) const fn failed(&mut self) {
        self.faults += 1;
    }

    /// Forgets what failed in a row: something else is asked.
    pub(super) const fn clear_faults(&mut self) {
        self.faults = 0;
    }

    /// Begins to count for another target.
    pub(super) const fn enter_target(&mut self) {
        (self.on_target, self.faults) = (0, 0);
    }

    /// Adds what something cost.
    pub(super) fn spend(&mut self, cost: Cost) {
        self.spent = self.spent.plus(cost);
    }
}
