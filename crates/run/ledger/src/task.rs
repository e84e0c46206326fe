//! Writes with a waiting caller.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::Error;

/// One write. The writer runs it in a transaction with others and reports whether it was committed.
pub(crate) trait Job: Send {
    fn run(&mut self, connection: &Connection) -> rusqlite::Result<()>;

    fn report(self: Box<Self>, committed: Result<(), Error>);
}

/// A write that returns a value to the waiting caller.
struct Closure<F, T, G, U> {
    write: Option<F>,
    value: Option<T>,
    /// Makes the value for the caller once it is committed.
    then: G,
    done: oneshot::Sender<Result<U, Error>>,
}

impl<F, T, G, U> Job for Closure<F, T, G, U>
where
    F: FnOnce(&Connection) -> rusqlite::Result<T> + Send,
    T: Send,
    G: FnOnce(T) -> U + Send,
    U: Send,
{
    fn run(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        if let Some(write) = self.write.take() {
            self.value = Some(write(connection)?);
        }
        Ok(())
    }

    fn report(self: Box<Self>, committed: Result<(), Error>) {
        let Self { value, then, done, .. } = *self;
        // An error means that the caller no longer waits.
        let _ = done.send(committed.and_then(|()| value.map(then).ok_or(Error::Closed)));
    }
}

/// Returns a job and what waits for its end. `then` makes the value for the caller from that of the write, once it is committed.
pub(crate) fn job<T: Send + 'static, U: Send + 'static>(
    write: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    then: impl FnOnce(T) -> U + Send + 'static,
) -> (Box<dyn Job>, Committed<U>) {
    let (done, end) = oneshot::channel();
    (Box::new(Closure { write: Some(write), value: None, then, done }), Committed(end))
}

/// A pending write: a future that completes when the write is durable. [`Committed::wait`] waits for it without a runtime.
#[must_use = "a write that nobody waits for may not be on the disk yet"]
pub struct Committed<T>(oneshot::Receiver<Result<T, Error>>);

impl<T> Committed<T> {
    pub(crate) const fn new(end: oneshot::Receiver<Result<T, Error>>) -> Self {
        Self(end)
    }

    /// Blocks the thread until the write is on the disk, and returns its value.
    ///
    /// # Errors
    /// [`Error::Storage`] if it could not be written, [`Error::Closed`] if the file was closed before.
    pub fn wait(self) -> Result<T, Error> {
        block_on(self)
    }
}

impl<T> Future for Committed<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map(|end| end.unwrap_or(Err(Error::Closed)))
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Blocks the thread until the future is done. Unlike a channel's own blocking calls it does not panic inside of a runtime.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    // Inside of a task, tokio's budget of 128 polls would run out, and then wake nobody before the task yields.
    let mut future = std::pin::pin!(tokio::task::unconstrained(future));
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        thread::park();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_may_wait_any_number_of_times_without_yielding() {
        for value in 0..300 {
            let (done, end) = oneshot::channel();
            thread::spawn(move || done.send(Ok(value)));
            assert_eq!(Committed::new(end).wait().unwrap(), value);
        }
    }
}
