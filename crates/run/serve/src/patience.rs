//! The time for which a client may keep a response waiting.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// The number of bytes for which a client may take a second.
const RATE: f64 = 1024.0;

/// The time that is left for waiting. Bytes that the client reads add to it, up to its beginning.
#[derive(Debug)]
struct Patience {
    max: Duration,
    left: Duration,
    /// The beginning of the present wait.
    since: Option<Instant>,
}

impl Patience {
    const fn new(max: Duration) -> Self {
        Self { max, left: max, since: None }
    }

    /// Notes that nothing can be written now. Returns the time at which the patience ends.
    fn blocked(&mut self, now: impl FnOnce() -> Instant) -> Instant {
        *self.since.get_or_insert_with(now) + self.left
    }

    /// Notes that so many bytes were written.
    fn wrote(&mut self, bytes: usize, now: impl FnOnce() -> Instant) {
        // Most connections never wait, and need no clock.
        if let Some(since) = self.since.take() {
            self.left = self.left.saturating_sub(now().saturating_duration_since(since));
        }
        if self.left < self.max {
            self.left = (self.left + Duration::from_secs_f64(bytes as f64 / RATE)).min(self.max);
        }
    }
}

/// A connection whose client has to read: it ends with an error if the client reads nothing for a time, or less than 1 KiB per second for
/// longer.
pub(crate) struct Impatient<S> {
    stream: S,
    patience: Patience,
    timer: Option<Pin<Box<Sleep>>>,
}

impl<S> Impatient<S> {
    pub(crate) const fn new(stream: S, max: Duration) -> Self {
        Self { stream, patience: Patience::new(max), timer: None }
    }

    /// Returns the result of a write, or an error once the patience has ended.
    fn checked<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        bytes: impl FnOnce(&T) -> usize,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        match &written {
            Poll::Ready(Ok(done)) => self.patience.wrote(bytes(done), Instant::now),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => {
                let end = self.patience.blocked(Instant::now);
                let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(end)));
                if timer.deadline() != end {
                    timer.as_mut().reset(end);
                }
                if timer.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
            }
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Impatient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Impatient<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.checked(written, |bytes| *bytes, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.checked(written, |bytes| *bytes, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.checked(flushed, |()| 0, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.checked(shut, |()| 0, cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client reads a number of bytes each second, between which the connection is blocked. Returns the seconds after which the patience
    /// of 10 s has ended, within an hour.
    fn ends(bytes: usize) -> Option<u64> {
        let start = Instant::now();
        let mut patience = Patience::new(Duration::from_secs(10));
        (0..3600).find(|second| {
            let at = start + Duration::from_secs(*second);
            let is_over = patience.blocked(|| at) <= at + Duration::from_secs(1);
            patience.wrote(bytes, || at + Duration::from_secs(1));
            is_over
        })
    }

    #[test]
    fn a_client_that_reads_less_than_the_rate_ends_and_a_faster_one_never_does() {
        for (bytes, expected) in [(0, Some(9)), (1, Some(10)), (512, Some(18)), (1024, None), (100_000, None)]
        {
            assert_eq!(ends(bytes), expected, "{bytes}");
        }
    }

    #[test]
    fn what_was_read_fast_gives_no_more_patience_than_there_was() {
        let start = Instant::now();
        let mut patience = Patience::new(Duration::from_secs(10));
        patience.wrote(1 << 30, || start);
        assert_eq!(patience.blocked(|| start), start + Duration::from_secs(10));
    }
}
