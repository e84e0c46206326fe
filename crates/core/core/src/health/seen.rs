use serde::{Deserialize, Serialize};

use crate::Time;

/// The evidence for one observation: how often, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Seen {
    pub(super) count: u32,
    pub(super) first: Time,
    pub(super) last: Time,
    /// The reason of the last one.
    pub(super) reason: String,
}

impl Seen {
    pub(super) const fn once(at: Time, reason: String) -> Self {
        Self { count: 1, first: at, last: at, reason }
    }

    pub(super) fn again(&mut self, at: Time, reason: &str) {
        self.count = self.count.saturating_add(1);
        self.last = self.last.max(at);
        reason.clone_into(&mut self.reason);
    }
}
