use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use formwork_core::{Answer, Call, Delta, Fault, FaultKind, Layer, SharedProvider};
use formwork_layers::{Around, around};
use futures_util::StreamExt as _;

use crate::Aimd;

/// A target that was called within this time counts towards the number of rows in progress.
const LATELY: Duration = Duration::from_secs(10);

/// A layer that measures the calls of one target, from which an engine derives the number of rows in progress.
///
/// It delays no call, because the delay would count towards the deadline of the run. Wrap each target in its own pace, and pass all of them to [`InProcess::with_paces`](crate::InProcess::with_paces).
///
/// ```
/// use std::sync::Arc;
///
/// use formwork_batch::Pace;
/// use formwork_core::Layer as _;
/// use formwork_testkit::Scripted;
///
/// let pace = Pace::new(64);
/// let provider = pace.wrap(Arc::new(Scripted::new([r#"{"age": 34}"#])));
/// assert_eq!(pace.limit(), 8); // it grows with calls that do not slow the target down
/// # drop(provider);
/// ```
#[derive(Debug, Clone)]
pub struct Pace(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    aimd: Aimd,
    called: Option<Instant>,
}

impl Pace {
    /// Creates a pace that starts at 8 calls and stays between 1 and `max`.
    pub fn new(max: u32) -> Self {
        let aimd = Aimd::new(8, max).with_slow_start();
        Self(Arc::new(Mutex::new(State { aimd, called: None })))
    }

    /// Returns the number of concurrent calls that the target sustains.
    pub fn limit(&self) -> usize {
        self.state().aimd.limit()
    }

    /// Returns whether the target was called within the last seconds.
    pub(crate) fn is_in_use(&self) -> bool {
        self.state().called.is_some_and(|called| called.elapsed() < LATELY)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, fault: &Fault) {
        if matches!(fault.kind, FaultKind::RateLimited | FaultKind::Overloaded) {
            self.state().aimd.refused();
        }
    }
}

impl Layer for Pace {
    fn wrap(&self, inner: SharedProvider) -> SharedProvider {
        around(inner, self.clone())
    }
}

impl Around for Pace {
    async fn call(&self, inner: &SharedProvider, call: &Call) -> Result<Answer, Fault> {
        let started = Instant::now();
        self.state().called = Some(started);
        let answer = inner.call(call).await;
        let answer = answer.inspect_err(|fault| self.failed(fault))?;
        // The time is taken until the first piece: how long the rest takes depends on its length.
        let (pace, mut first) = (self.clone(), None);
        Ok(Answer::new(answer.inspect(move |piece| match piece {
            Ok(delta) => {
                let first = *first.get_or_insert_with(|| started.elapsed());
                if matches!(delta, Delta::End(_)) {
                    pace.state().aimd.answered(first);
                }
            }
            Err(fault) => pace.failed(fault),
        })))
    }
}
