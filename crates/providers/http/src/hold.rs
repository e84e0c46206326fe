//! The pause that a server's rate limits ask for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use formwork_core::Time;
use tokio::runtime::Handle;

/// The longest pause that is waited for. After a longer one, the request is sent, and the server's 429 goes to the retry policy.
const LONGEST: Duration = Duration::from_secs(20);

/// The time from which on the server takes requests, by the headers of its last response.
#[derive(Debug, Default)]
pub(crate) struct Hold(AtomicU64);

impl Hold {
    /// Records the pause of a response; `None` if it leaves further requests.
    pub(crate) fn set(&self, pause: Option<Duration>, now: Time) {
        let until = pause.filter(|pause| *pause <= LONGEST).map_or(0, |pause| now.after(pause).0);
        self.0.store(until, Ordering::Relaxed);
    }

    /// Waits for the end of the pause, unless the deadline is before it. `left` is the time until the deadline.
    pub(crate) async fn wait(&self, now: Time, left: Option<Duration>) {
        let pause = Time(self.0.load(Ordering::Relaxed)).since(now);
        let is_short = !pause.is_zero() && pause <= LONGEST && left.is_none_or(|left| pause < left);
        // Without a runtime the request is a fault.
        if is_short && Handle::try_current().is_ok() {
            tokio::time::sleep(pause).await;
        }
    }
}
