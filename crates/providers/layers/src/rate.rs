use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use formwork_core::{Answer, Call, Fault, Layer, SharedProvider};
use governor::clock::{Clock, Reference as _};
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use crate::around::{Around, around};

/// Limits the number of calls that begin within a time span. Further calls wait for their turn, in order.
///
/// Calls are spaced evenly: with 60 a minute, one may begin each second. [`with_burst`](Self::with_burst) lets several
/// begin at once. Clones of a value share its limit, and so do all providers that they wrap. The time that a call waits counts
/// towards the deadline of its run. A call that is dropped while it waits does not use up the limit.
///
/// ```
/// use std::{sync::Arc, time::Duration};
///
/// use formwork_core::Layer;
/// use formwork_layers::Rate;
///
/// let limited = Rate::new(60, Duration::from_secs(60)).wrap(Arc::new(formwork_testkit::Scripted::new(["{}"])));
/// # let _ = limited;
/// ```
#[derive(Clone)]
pub struct Rate {
    spacing: Duration,
    burst: u32,
    gate: Arc<Gate>,
}

/// The maximum time span. The limiter multiplies its nanoseconds in 64 bits and panics on overflow.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The queue of the calls: that of a fair mutex, whose holder asks the limiter.
struct Gate {
    queue: Mutex<()>,
    limiter: RateLimiter<NotKeyed, InMemoryState, Elapsed, NoOpMiddleware<Duration>>,
    clock: Elapsed,
}

/// The clock of tokio, which tests can pause.
#[derive(Clone)]
struct Elapsed(Instant);

impl Clock for Elapsed {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

impl Rate {
    /// Creates a limit of `calls` calls (0 counts as 1) that begin within any time span of length `per`.
    pub fn new(calls: usize, per: Duration) -> Self {
        let (nanos, calls) = (per.min(LONGEST).as_nanos(), calls.max(1) as u128);
        // Rounding down would let one call too many begin within the span.
        let spacing = u64::try_from(nanos.div_ceil(calls)).unwrap_or(u64::MAX);
        Self::spaced(Duration::from_nanos(spacing.max(1)), 1)
    }

    /// Sets the number of calls that may begin at once after a pause (default: 1, at least 1). Up to as many more may then
    /// begin within the first span after it.
    #[must_use]
    pub fn with_burst(self, calls: u32) -> Self {
        Self::spaced(self.spacing, calls.max(1))
    }

    fn spaced(spacing: Duration, burst: u32) -> Self {
        let max = LONGEST.as_nanos() / spacing.as_nanos().max(1);
        let burst = burst.min(u32::try_from(max).unwrap_or(u32::MAX));
        let calls = NonZeroU32::new(burst).unwrap_or(NonZeroU32::MIN);
        // A span of zero has no quota, and none is needed.
        let quota = Quota::with_period(spacing).unwrap_or(Quota::per_second(calls)).allow_burst(calls);
        let clock = Elapsed(Instant::now());
        let limiter = RateLimiter::direct_with_clock(quota, clock.clone());
        Self { spacing, burst, gate: Arc::new(Gate { queue: Mutex::new(()), limiter, clock }) }
    }
}

impl Gate {
    /// Waits for a turn and takes it when it is due.
    async fn turn(&self) {
        let _first = self.queue.lock().await;
        while let Err(not_yet) = self.limiter.check() {
            let wait: Duration = not_yet.earliest_possible().duration_since(self.clock.now()).into();
            sleep(wait).await;
        }
    }
}

impl Layer for Rate {
    fn wrap(&self, inner: SharedProvider) -> SharedProvider {
        around(inner, self.clone())
    }
}

formwork_core::debug_fields!(Rate { spacing, burst });

impl Around for Rate {
    async fn call(&self, inner: &SharedProvider, call: &Call) -> Result<Answer, Fault> {
        self.gate.turn().await;
        inner.call(call).await
    }
}
