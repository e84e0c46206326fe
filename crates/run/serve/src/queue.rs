use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

/// The time after which a request that waits for its client to read does not count as worked on.
const REST: Duration = Duration::from_secs(1);

/// Limits the requests that are worked on at the same time, and those that wait. Waiting clients get their turns in rotation, however many
/// requests each of them has. Clones share the limits.
///
/// ```
/// use std::time::Duration;
///
/// use formwork_serve::{Queue, QueueError};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let queue = Queue::new(1, 0);
/// let turn = queue.take("alice", Duration::ZERO).await.unwrap();
/// assert_eq!(queue.take("bob", Duration::ZERO).await.err(), Some(QueueError::Full));
/// assert_eq!((queue.waiting(), queue.working()), (0, 1));
/// drop(turn);
/// assert_eq!(queue.working(), 0);
/// # });
/// ```
#[derive(Debug, Clone)]
pub struct Queue(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    max_working: usize,
    max_waiting: usize,
    start: Instant,
}

#[derive(Debug, Default)]
struct State {
    /// The requests with a turn, but those that rested so long that their turns were given to others.
    working: usize,
    waiting: usize,
    /// The waiting requests of each client, in the order of their next turns.
    clients: VecDeque<(Box<str>, VecDeque<oneshot::Sender<()>>)>,
    turns: HashMap<u64, Arc<Pace>>,
    next: u64,
}

/// Whether a request waits for its client to read. Clones share it.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let queue = formwork_serve::Queue::new(1, 0);
/// let turn = queue.take("alice", std::time::Duration::ZERO).await.unwrap();
/// turn.pace().rest();
/// // After a second, another request gets the turn as well.
/// turn.pace().work();
/// # });
/// ```
#[derive(Debug)]
pub struct Pace {
    start: Instant,
    /// The milliseconds from `start` to the beginning of the rest, plus 1; 0 while it works.
    resting: AtomicU64,
}

impl Pace {
    /// Notes that the request waits for its client to read.
    pub fn rest(&self) {
        let passed = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX - 1);
        self.resting.store(passed + 1, Ordering::Relaxed);
    }

    /// Notes that the request is worked on.
    pub fn work(&self) {
        self.resting.store(0, Ordering::Relaxed);
    }

    fn has_rested(&self, now: u64) -> bool {
        let since = self.resting.load(Ordering::Relaxed);
        since > 0 && now.saturating_sub(since - 1) >= REST.as_millis() as u64
    }
}

/// The turn of a request, which ends when it is dropped.
#[derive(Debug)]
pub struct Turn {
    inner: Arc<Inner>,
    number: u64,
    pace: Arc<Pace>,
}

impl Turn {
    /// Returns the pace of the request.
    pub const fn pace(&self) -> &Arc<Pace> {
        &self.pace
    }

    /// Ends the turn before it is dropped: the next request that waits gets it. A request that goes on later takes another one.
    pub fn end(&self) {
        let mut state = self.inner.lock();
        // A turn that was given to another request is not in the list.
        if state.turns.remove(&self.number).is_some() {
            state.working -= 1;
            state.call(self.inner.max_working);
        }
    }

    /// Returns whether the turn has ended, or was given to another request.
    pub fn has_ended(&self) -> bool {
        !self.inner.lock().turns.contains_key(&self.number)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.end();
    }
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
        let inner = Inner {
            state: Mutex::default(),
            max_working: max_concurrent.max(1),
            max_waiting,
            start: Instant::now(),
        };
        Self(Arc::new(inner))
    }

    /// Waits for the turn of a request of a client, for at most `within`. A request that [rests](Pace::rest) for a second does not count
    /// as worked on while others wait.
    ///
    /// # Errors
    /// [`QueueError`] if too many requests wait already, or the turn does not come in time.
    pub async fn take(&self, client: impl fmt::Display, within: Duration) -> Result<Turn, QueueError> {
        let mut waiting = {
            let mut state = self.0.lock();
            state.reclaim(&self.0);
            if state.working < self.0.max_working {
                state.working += 1;
                return Ok(self.turn(&mut state));
            }
            if state.waiting >= self.0.max_waiting {
                return Err(QueueError::Full);
            }
            let (call, called) = oneshot::channel();
            // Most requests never wait, and need no name.
            let client = client.to_string();
            match state.clients.iter_mut().find(|(name, _)| **name == *client) {
                Some((_, calls)) => calls.push_back(call),
                None => state.clients.push_back((client.into(), VecDeque::from([call]))),
            }
            state.waiting += 1;
            Waiting { inner: &self.0, called, has_turn: false }
        };
        let until = tokio::time::Instant::now() + within;
        loop {
            let tick = until.min(tokio::time::Instant::now() + REST);
            match tokio::time::timeout_at(tick, &mut waiting.called).await {
                Ok(Ok(())) => {
                    waiting.has_turn = true;
                    let mut state = self.0.lock();
                    return Ok(self.turn(&mut state));
                }
                // The queue lives as long as this future.
                Ok(Err(_)) => return Err(QueueError::Full),
                Err(_) if tick >= until => return Err(QueueError::TooLate),
                Err(_) => self.0.lock().reclaim(&self.0),
            }
        }
    }

    /// Returns a turn, which is counted already.
    fn turn(&self, state: &mut State) -> Turn {
        let pace = Arc::new(Pace { start: self.0.start, resting: AtomicU64::new(0) });
        state.next += 1;
        state.turns.insert(state.next, Arc::clone(&pace));
        Turn { inner: Arc::clone(&self.0), number: state.next, pace }
    }

    /// Returns the number of requests that are worked on.
    pub fn working(&self) -> usize {
        self.0.lock().working
    }

    /// Returns the number of requests that wait.
    pub fn waiting(&self) -> usize {
        self.0.lock().waiting
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes the turns of requests that rest, if there is no other.
    fn reclaim(&mut self, inner: &Inner) {
        if self.working < inner.max_working {
            return;
        }
        let now = u64::try_from(inner.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        let before = self.turns.len();
        self.turns.retain(|_, pace| !pace.has_rested(now));
        self.working -= before - self.turns.len();
        self.call(inner.max_working);
    }

    /// Gives the free turns to those that wait: to one request of a client, then to one of the next.
    fn call(&mut self, max: usize) {
        while self.working < max {
            let Some((name, mut calls)) = self.clients.pop_front() else { return };
            let called = calls.pop_front();
            if !calls.is_empty() {
                self.clients.push_back((name, calls));
            }
            // One that has stopped waiting gets none.
            self.working += usize::from(called.is_some_and(|call| call.send(()).is_ok()));
        }
    }
}

/// A request that waits. It is counted until it has its turn, or is dropped.
struct Waiting<'q> {
    inner: &'q Inner,
    called: oneshot::Receiver<()>,
    has_turn: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.called.close();
        let mut state = self.inner.lock();
        state.waiting -= 1;
        if self.has_turn {
            return;
        }
        if self.called.try_recv().is_ok() {
            // It was called at the same moment: the turn goes to the next.
            state.working -= 1;
            state.call(self.inner.max_working);
            return;
        }
        state.clients.retain_mut(|(_, calls)| {
            calls.retain(|call| !call.is_closed());
            !calls.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn run<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(future)
    }

    #[test]
    fn a_turn_that_is_ended_goes_to_the_next_once() {
        run(async {
            let queue = Queue::new(1, 100);
            let first = queue.take("a", LONG).await.unwrap();
            first.end();
            let next = queue.take("b", LONG).await.unwrap();
            first.end();
            drop(first);
            assert_eq!((queue.working(), next.has_ended()), (1, false));
            next.end();
            assert_eq!((queue.working(), next.has_ended()), (0, true));
        });
    }

    #[test]
    fn waiting_clients_get_their_turns_in_rotation_and_none_is_lost() {
        run(async {
            let queue = Queue::new(1, 100);
            let first = queue.take("a", LONG).await.unwrap();
            let order = Arc::new(Mutex::new(String::new()));
            let mut tasks = Vec::new();
            for client in ["a", "a", "a", "a", "b", "c", "b"] {
                let (queue, order) = (queue.clone(), Arc::clone(&order));
                tasks.push(tokio::spawn(async move {
                    let turn = queue.take(client, LONG).await.unwrap();
                    order.lock().unwrap().push_str(client);
                    drop(turn);
                }));
                tokio::task::yield_now().await;
            }
            // One that leaves is skipped, and so is one that is too late.
            let late = queue.take("b", Duration::ZERO).await;
            assert_eq!((late.err(), queue.waiting()), (Some(QueueError::TooLate), 7));
            tasks.remove(3).abort();
            tokio::task::yield_now().await;
            assert_eq!((queue.waiting(), queue.working()), (6, 1));
            drop(first);
            for task in tasks {
                task.await.unwrap();
            }
            assert_eq!(*order.lock().unwrap(), "abcaba");
            assert_eq!((queue.waiting(), queue.working()), (0, 0));
        });
    }

    #[test]
    fn a_request_that_waits_for_its_client_does_not_keep_others_from_their_turns() {
        run(async {
            let queue = Queue::new(2, 100);
            let (resting, working) =
                (queue.take("a", LONG).await.unwrap(), queue.take("a", LONG).await.unwrap());
            assert_eq!(queue.take("a", Duration::ZERO).await.err(), Some(QueueError::TooLate));
            resting.pace().rest();
            let other = queue.take("a", LONG).await.unwrap();
            assert_eq!(queue.take("a", Duration::ZERO).await.err(), Some(QueueError::TooLate));
            // Its own end gives no second turn.
            resting.pace().work();
            drop(resting);
            assert_eq!(queue.take("a", Duration::ZERO).await.err(), Some(QueueError::TooLate));
            drop((other, working));
            assert_eq!((queue.waiting(), queue.working()), (0, 0));
        });
    }
}
