use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use formwork_core::{Answer, Call, Capabilities, Fault, Layer, Provider, SharedProvider};
use tokio::time::{Instant, sleep_until};

/// At most so many calls begin within any span of so much time; the others wait for their turn, in order.
///
/// Every provider that one value wraps shares the limit. A run's deadline counts the time that a call waits; a call that
/// is dropped while it waits has used its turn.
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
#[derive(Debug, Clone)]
pub struct Rate {
    calls: usize,
    per: Duration,
    turns: Arc<Mutex<VecDeque<Instant>>>,
}

impl Rate {
    /// At most so many calls, at least 1, within this time.
    pub fn new(calls: usize, per: Duration) -> Self {
        Self { calls: calls.max(1), per, turns: Arc::default() }
    }

    /// When the next call may begin; its turn is taken.
    fn turn(&self, now: Instant) -> Instant {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        // As many as may begin in the span are remembered: the oldest of them says when the next one may.
        let oldest = if turns.len() >= self.calls { turns.pop_front() } else { None };
        let turn = oldest.and_then(|oldest| oldest.checked_add(self.per)).map_or(now, |free| free.max(now));
        turns.push_back(turn);
        turn
    }
}

impl Layer for Rate {
    fn wrap(&self, inner: SharedProvider) -> SharedProvider {
        Arc::new(Paced { inner, rate: self.clone() })
    }
}

#[derive(Debug)]
struct Paced {
    inner: SharedProvider,
    rate: Rate,
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
        let now = Instant::now();
        let turn = self.rate.turn(now);
        if turn > now {
            sleep_until(turn).await;
        }
        self.inner.call(call).await
    }

    async fn probe(&self) -> Result<Capabilities, Fault> {
        self.inner.probe().await
    }
}
