use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Limits the requests that are worked on at the same time, and those that wait. Clones share the limits.
///
/// ```
/// use std::time::Duration;
///
/// use formwork_serve::{Queue, QueueError};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let queue = Queue::new(1, 0);
/// let turn = queue.take(Duration::ZERO).await.unwrap();
/// assert_eq!(queue.take(Duration::ZERO).await.err(), Some(QueueError::Full));
/// assert_eq!((queue.waiting(), queue.working()), (0, 1));
/// drop(turn);
/// assert_eq!(queue.working(), 0);
/// # });
/// ```
#[derive(Debug, Clone)]
pub struct Queue {
    turns: Arc<Semaphore>,
    /// Requests that have their turn hold one as well.
    places: Arc<Semaphore>,
    max: (usize, usize),
}

/// The turn of a request, which ends when it is dropped.
#[derive(Debug)]
pub struct Turn {
    _turn: OwnedSemaphorePermit,
    _place: OwnedSemaphorePermit,
}

/// The reason why a request got no turn.
///
/// ```
/// assert_ne!(formwork_serve::QueueError::Full, formwork_serve::QueueError::TooLate);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueError {
    /// Too many requests wait already.
    Full,
    /// The turn did not come in time.
    TooLate,
}

impl Queue {
    /// Creates a queue for at most `max_concurrent` requests at the same time (at least 1), while at most `max_waiting` wait.
    pub fn new(max_concurrent: usize, max_waiting: usize) -> Self {
        let max = [max_concurrent, max_concurrent.saturating_add(max_waiting)];
        let [turns, places] = max.map(|number| number.clamp(1, Semaphore::MAX_PERMITS));
        Self {
            turns: Arc::new(Semaphore::new(turns)),
            places: Arc::new(Semaphore::new(places)),
            max: (turns, places),
        }
    }

    /// Waits for a turn, for at most `within`.
    ///
    /// # Errors
    /// [`QueueError`] if too many requests wait already, or the turn does not come in time.
    pub async fn take(&self, within: Duration) -> Result<Turn, QueueError> {
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| QueueError::Full)?;
        match tokio::time::timeout(within, Arc::clone(&self.turns).acquire_owned()).await {
            Ok(Ok(turn)) => Ok(Turn { _turn: turn, _place: place }),
            // The semaphore is never closed.
            Ok(Err(_)) => Err(QueueError::Full),
            Err(_) => Err(QueueError::TooLate),
        }
    }

    /// Returns the number of requests that are worked on.
    pub fn working(&self) -> usize {
        self.max.0 - self.turns.available_permits()
    }

    /// Returns the number of requests that wait.
    pub fn waiting(&self) -> usize {
        (self.max.1 - self.places.available_permits()).saturating_sub(self.working())
    }
}
