use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use formwork_core::{Fault, FaultKind};
use formwork_wire::Chunks;
use futures_core::Stream;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::fault::within_body;

/// How long and how large a body may be.
pub(crate) struct Limits {
    /// Between two chunks.
    pub(crate) idle: Duration,
    /// For all of it.
    pub(crate) deadline: Option<Instant>,
    /// In bytes, unpacked.
    pub(crate) most: usize,
}

/// A body as it comes in. Nothing is read ahead, and nothing is spawned: who does not ask lets the server wait.
pub(crate) struct Incoming {
    chunks: Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>,
    limits: Limits,
    host: Arc<str>,
    /// In bytes.
    seen: usize,
    /// Made when a chunk is waited for the first time; a short answer comes with its head.
    timer: Option<Pin<Box<Sleep>>>,
    /// Whether the timer runs. It does while a chunk is waited for, not while the last one is worked on.
    waiting: bool,
    ended: bool,
}

impl Incoming {
    pub(crate) fn new(response: reqwest::Response, limits: Limits, host: Arc<str>) -> Self {
        Self {
            chunks: Box::pin(response.bytes_stream()),
            timer: None,
            limits,
            host,
            seen: 0,
            waiting: false,
            ended: false,
        }
    }

    fn is_late(&self) -> bool {
        self.limits.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    fn too_late(&self) -> Fault {
        let Self { host, seen, .. } = self;
        let message = format!("the answer of {host} was not whole by the deadline; {seen} bytes had come");
        Fault::new(FaultKind::Timeout, message)
    }

    fn too_slow(&self) -> Fault {
        let Self { host, seen, limits: Limits { idle, .. }, .. } = self;
        let message = format!("{host} sent nothing more for {idle:?} (idle timeout); {seen} bytes had come");
        Fault::new(FaultKind::Timeout, message)
    }

    /// Returns the meaning of a chunk, or of the end of them.
    fn take(&mut self, chunk: Option<reqwest::Result<Bytes>>) -> Option<Result<Bytes, Fault>> {
        let chunk = match chunk? {
            Ok(chunk) => chunk,
            Err(error) => return Some(Err(within_body(&error, &self.host, self.seen))),
        };
        self.seen = self.seen.saturating_add(chunk.len());
        if self.seen > self.limits.most {
            let message = format!("the answer of {} is longer than {} bytes", self.host, self.limits.most);
            return Some(Err(Fault::new(FaultKind::BadWire, message)));
        }
        // A server that always has something ready never lets the timer be looked at.
        Some(if self.is_late() { Err(self.too_late()) } else { Ok(chunk) })
    }
}

/// How long the end of a body is waited for behind an answer. Servers send it right after the last piece, and a connection
/// is not worth more: a new one takes no longer.
const REST: Duration = Duration::from_millis(200);

impl Chunks for Incoming {
    fn finish_soon(mut self: Pin<&mut Self>) -> bool {
        let soon = far(REST);
        self.limits.deadline = Some(self.limits.deadline.map_or(soon, |deadline| deadline.min(soon)));
        self.waiting = false;
        true
    }
}

impl Stream for Incoming {
    type Item = Result<Bytes, Fault>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if this.ended {
            return Poll::Ready(None);
        }
        if let Poll::Ready(chunk) = this.chunks.as_mut().poll_next(cx) {
            this.waiting = false;
            let item = this.take(chunk);
            this.ended = !matches!(item, Some(Ok(_)));
            return Poll::Ready(item);
        }
        let idle = this.limits.idle;
        let until = || this.limits.deadline.map_or(far(idle), |deadline| deadline.min(far(idle)));
        let timer = match &mut this.timer {
            Some(timer) => {
                if !this.waiting {
                    timer.as_mut().reset(until());
                }
                timer
            }
            None => this.timer.insert(Box::pin(sleep_until(until()))),
        };
        this.waiting = true;
        if timer.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        this.ended = true;
        Poll::Ready(Some(Err(if this.is_late() { this.too_late() } else { this.too_slow() })))
    }
}

/// The moment so long from now; a year from now if that is later than there are moments.
pub(crate) fn far(duration: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    Instant::now() + duration.min(YEAR)
}
