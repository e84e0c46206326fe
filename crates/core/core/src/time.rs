use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A point in time, in milliseconds since the Unix epoch.
///
/// The core never reads a clock: the driver of a [`Run`](crate::Run) passes the time to it.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Time(pub u64);

impl Time {
    /// Returns the time `duration` later; the maximum on overflow.
    ///
    /// ```
    /// use std::time::Duration;
    /// use formwork_core::Time;
    ///
    /// let later = Time(1_000).after(Duration::from_secs(2));
    /// assert_eq!((later, later.since(Time(1_000))), (Time(3_000), Duration::from_secs(2)));
    /// ```
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
    }

    /// Returns the time from `earlier` to this time; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// Returns the time that is as far from `to` as this time is from `from`; 0 or the maximum on overflow.
    pub(crate) const fn moved(self, from: Self, to: Self) -> Self {
        Self(if to.0 >= from.0 {
            self.0.saturating_add(to.0 - from.0)
        } else {
            self.0.saturating_sub(from.0 - to.0)
        })
    }
}
