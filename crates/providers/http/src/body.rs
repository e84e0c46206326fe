use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use formwork_core::{Fault, FaultKind};
use formwork_wire::Chunks;
use futures_core::Stream;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::direct::Pieces;
use crate::fault::{Failure, within_body};

/// The limits of a body.
pub(crate) struct Limits {
    /// The maximum time between two chunks.
    pub(crate) idle: Duration,
    /// The time by which the body has to be complete.
    pub(crate) deadline: Option<Instant>,
    /// The maximum number of bytes after decompression.
    pub(crate) max_bytes: usize,
}

/// The pieces of a body as an HTTP client returns them.
pub(crate) enum Received {
    Reqwest(Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>),
    Direct(Box<Pieces>),
}

impl Received {
    pub(crate) fn of(response: reqwest::Response) -> Self {
        Self::Reqwest(Box::pin(response.bytes_stream()))
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Failure>>> {
        match self {
            Self::Reqwest(pieces) => {
                pieces.as_mut().poll_next(cx).map(|piece| Some(piece?.map_err(Failure::Reqwest)))
            }
            Self::Direct(pieces) => Pin::new(&mut **pieces).poll_next(cx),
        }
    }
}

/// A body that is read on demand. Nothing is read ahead, and nothing is spawned, so that a slow reader slows the server
/// down.
pub(crate) struct Incoming {
    chunks: Received,
    limits: Limits,
    host: Arc<str>,
    /// The number of bytes so far.
    seen: usize,
    /// The timer, which is created when a chunk is not available at once; short responses arrive with their head.
    timer: Option<Pin<Box<Sleep>>>,
    /// Whether the timer runs. It does while a chunk is awaited, and not while the last chunk is processed.
    waiting: bool,
    ended: bool,
}

impl Incoming {
    pub(crate) fn new(chunks: Received, limits: Limits, host: Arc<str>) -> Self {
        Self { chunks, timer: None, limits, host, seen: 0, waiting: false, ended: false }
    }

    fn is_late(&self) -> bool {
        self.limits.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    fn too_late(&self) -> Fault {
        let Self { host, seen, .. } = self;
        let message = format!("the response of {host} was incomplete by the deadline, after {seen} bytes");
        Fault::new(FaultKind::Timeout, message)
    }

    fn too_slow(&self) -> Fault {
        let Self { host, seen, limits: Limits { idle, .. }, .. } = self;
        let message = format!("{host} sent nothing for {idle:?} (idle timeout), after {seen} bytes");
        Fault::new(FaultKind::Timeout, message)
    }

    /// Converts a chunk, or the end of the body, and checks the limits.
    fn take(&mut self, chunk: Option<Result<Bytes, Failure>>) -> Option<Result<Bytes, Fault>> {
        let chunk = match chunk? {
            Ok(chunk) => chunk,
            Err(error) => return Some(Err(within_body(&error, &self.host, self.seen))),
        };
        self.seen = self.seen.saturating_add(chunk.len());
        if self.seen > self.limits.max_bytes {
            let message =
                format!("the response of {} is longer than {} bytes", self.host, self.limits.max_bytes);
            return Some(Err(Fault::new(FaultKind::BadWire, message)));
        }
        // A server that always has a chunk ready would never let the timer be polled.
        Some(if self.is_late() { Err(self.too_late()) } else { Ok(chunk) })
    }
}

/// The maximum time to wait for the end of a body after the answer. Servers send it right after the last piece, and waiting
/// longer takes more time than a new connection.
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
        if let Poll::Ready(chunk) = this.chunks.poll_next(cx) {
            this.waiting = false;
            let item = this.take(chunk);
            this.ended = !matches!(item, Some(Ok(_)));
            return Poll::Ready(item);
        }
        let until = || {
            let idle = far(this.limits.idle);
            this.limits.deadline.map_or(idle, |deadline| deadline.min(idle))
        };
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

/// Returns the time `duration` from now, at most one year, because `Instant` cannot represent arbitrarily late times.
pub(crate) fn far(duration: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    Instant::now() + duration.min(YEAR)
}
