use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use formwork_core::{Clock, Time};
use tokio::time::Instant;

/// The real time, with the timers of tokio.
///
/// The clock reads the wall clock once and then advances monotonically, so that a change of the wall clock does not move a
/// deadline. Waiting requires a tokio runtime with a time driver. The blocking methods start one; on
/// another executor, give the driver a [`Clock`] of your own.
///
/// ```
/// use formwork_core::{Clock, Time};
/// use formwork_extract::TokioClock;
///
/// assert!(TokioClock::new().now() > Time(1_700_000_000_000));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    epoch: Time,
    started: Instant,
}

impl TokioClock {
    /// Creates a clock with the current time.
    pub fn new() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { epoch: Time(0).after(since_epoch), started: Instant::now() }
    }
}

impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Clock for TokioClock {
    fn now(&self) -> Time {
        self.epoch.after(self.started.elapsed())
    }

    async fn sleep_until(&self, until: Time) {
        tokio::time::sleep(until.since(self.now())).await;
    }
}
