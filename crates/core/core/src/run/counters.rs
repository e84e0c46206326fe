//! The number of calls of each kind, and their cost.

use serde::{Deserialize, Serialize};

use crate::Cost;

/// The counters that policies and limits depend on. Except for consecutive faults, they grow until the next target or
/// attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counters {
    pub(super) attempts: u32,
    pub(super) on_target: u32,
    pub(super) patches: u32,
    pub(super) faults: u32,
    pub(super) spent: Cost,
}

impl Counters {
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

    /// Counts a failed call.
    pub(super) const fn failed(&mut self) {
        self.faults += 1;
    }

    /// Resets the number of consecutive failed calls, because another call follows.
    pub(super) const fn clear_faults(&mut self) {
        self.faults = 0;
    }

    /// Resets the counters of a target.
    pub(super) const fn enter_target(&mut self) {
        (self.on_target, self.faults) = (0, 0);
    }

    /// Adds a cost.
    pub(super) fn spend(&mut self, cost: Cost) {
        self.spent = self.spent.plus(cost);
    }
}
