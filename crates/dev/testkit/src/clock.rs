use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use formwork_core::{Clock, Time};

/// A clock for tests: sleeping returns at once and advances the clock.
///
/// ```
/// use formwork_core::{Clock, Time};
/// use formwork_testkit::VirtualClock;
///
/// let clock = VirtualClock::starting_at(Time(1_000));
/// clock.advance(std::time::Duration::from_secs(2));
/// assert_eq!((clock.now(), clock.waits().len()), (Time(3_000), 0));
/// ```
#[derive(Debug, Default)]
pub struct VirtualClock {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    now: Time,
    waits: Vec<Duration>,
}

impl VirtualClock {
    /// Creates a clock that shows this time.
    pub fn starting_at(now: Time) -> Self {
        Self { state: Mutex::new(State { now, waits: Vec::new() }) }
    }

    /// Advances the clock.
    pub fn advance(&self, duration: Duration) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.now = state.now.after(duration);
    }

    /// Returns the duration of every sleep so far, in order.
    pub fn waits(&self) -> Vec<Duration> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).waits.clone()
    }
}

#[async_trait]
impl Clock for VirtualClock {
    fn now(&self) -> Time {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).now
    }

    async fn sleep_until(&self, until: Time) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = until.since(state.now);
        state.waits.push(wait);
        state.now = state.now.max(until);
    }
}
