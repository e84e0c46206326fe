use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use formwork_core::{Clock, Time};

use crate::CancellationToken;

/// The reason why waiting ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interruption {
    /// The caller cancelled.
    Cancelled,
    /// The deadline passed.
    Late,
}

/// Ends waiting at a cancellation or at a deadline, whichever comes first.
pub(crate) struct Interrupt<'a> {
    clock: &'a dyn Clock,
    deadline: Option<Time>,
    /// `None` if nothing can cancel.
    cancelled: Option<Pin<Box<dyn Future<Output = ()> + Send + 'a>>>,
    late: Option<Pin<Box<dyn Future<Output = ()> + Send + 'a>>>,
}

impl<'a> Interrupt<'a> {
    pub(crate) fn new(
        clock: &'a dyn Clock,
        deadline: Option<Time>,
        cancel: Option<&'a CancellationToken>,
    ) -> Self {
        let cancelled = cancel.map(|cancel| Box::pin(cancel.cancelled()) as _);
        Self { clock, deadline, cancelled, late: None }
    }

    /// Waits for `work`, a cancellation or the deadline. After an interruption it must not be called again.
    pub(crate) async fn or<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Interruption> {
        // A stream that is always ready would never poll the timer.
        if self.deadline.is_some_and(|deadline| self.clock.now() >= deadline) {
            return Err(Interruption::Late);
        }
        let mut work = pin!(work);
        poll_fn(|cx| {
            if self.cancelled.as_mut().is_some_and(|cancelled| cancelled.as_mut().poll(cx).is_ready()) {
                return Poll::Ready(Err(Interruption::Cancelled));
            }
            if let Poll::Ready(done) = work.as_mut().poll(cx) {
                return Poll::Ready(Ok(done));
            }
            let Some(deadline) = self.deadline else { return Poll::Pending };
            // The timer is created late, so that a call that is ready at once needs no runtime with timers.
            let clock = self.clock;
            let late = self.late.get_or_insert_with(|| clock.sleep_until(deadline));
            late.as_mut().poll(cx).map(|()| Err(Interruption::Late))
        })
        .await
    }
}
