use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use formwork_core::{Answer, Call, Capabilities, Fault, Layer, Provider, SharedProvider};
use governor::clock::{Clock, Reference as _};
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

/// Limits how many calls begin within any span of a given length. The others wait for their turn, in order.
///
/// Calls are spaced evenly: with 60 a minute, one may begin each second. [`with_burst`](Self::with_burst) lets several begin at
/// once. Every provider that one value wraps shares the limit. A run's deadline counts the time that a call waits; a call
/// that is dropped while it waits takes no turn.
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

/// The longest time that is counted. Its nanoseconds are multiplied in 64 bits, and the limiter panics where that
/// overflows.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The calls that wait stand in the queue of the mutex, which is fair; the first of them asks the limiter.
struct Gate {
    queue: Mutex<()>,
    limiter: RateLimiter<NotKeyed, InMemoryState, Elapsed, NoOpMiddleware<Duration>>,
    clock: Elapsed,
}

/// Tokio's clock, which tests hold still.
#[derive(Clone)]
struct Elapsed(Instant);

impl Clock for Elapsed {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

impl Rate {
    /// Limits calls to so many, at least 1, within any span of this length.
    pub fn new(calls: usize, per: Duration) -> Self {
        let (nanos, calls) = (per.min(LONGEST).as_nanos(), calls.max(1) as u128);
        // Rounded up: rounded down, one call too many would begin within the span.
        let spacing = u64::try_from(nanos.div_ceil(calls)).unwrap_or(u64::MAX);
        Self::spaced(Duration::from_nanos(spacing.max(1)), 1)
    }

    /// Sets how many calls may begin at once after a pause (default: 1, at least 1). Up to as many more then begin within
    /// the first span after it.
    #[must_use]
    pub fn with_burst(self, calls: u32) -> Self {
        Self::spaced(self.spacing, calls.max(1))
    }

    fn spaced(spacing: Duration, burst: u32) -> Self {
        let most = LONGEST.as_nanos() / spacing.as_nanos().max(1);
        let burst = burst.min(u32::try_from(most).unwrap_or(u32::MAX));
        let calls = NonZeroU32::new(burst).unwrap_or(NonZeroU32::MIN);
        // There is no quota for no time at all, and none is asked for.
        let quota = Quota::with_period(spacing).unwrap_or(Quota::per_second(calls)).allow_burst(calls);
        let clock = Elapsed(Instant::now());
        let limiter = RateLimiter::direct_with_clock(quota, clock.clone());
        Self { spacing, burst, gate: Arc::new(Gate { queue: Mutex::new(()), limiter, clock }) }
    }
}

impl Gate {
    /// Waits for a turn, and takes it when it is due, not before.
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
        Arc::new(Paced { inner, gate: Arc::clone(&self.gate) })
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rate")
            .field("spacing", &self.spacing)
            .field("burst", &self.burst)
            .finish_non_exhaustive()
    }
}

struct Paced {
    inner: SharedProvider,
    gate: Arc<Gate>,
}

impl fmt::Debug for Paced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Paced").field("inner", &self.inner).finish_non_exhaustive()
    }
}

#[async_trait]
impl Provider for Paced {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    async fn call(&self, call: &Call) -> Result<Answer, Fault> {
        self.gate.turn().await;
        self.inner.call(call).await
    }

    async fn probe(&self) -> Result<Capabilities, Fault> {
        self.inner.probe().await
    }
}
