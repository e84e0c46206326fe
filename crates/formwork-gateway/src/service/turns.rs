use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Shared;
use crate::limits::Limits;
use crate::problem::{Kind, Problem};

/// The requests that are worked on, those that wait, and the open streams of each key.
#[derive(Debug)]
pub(crate) struct Turns {
    turns: Arc<Semaphore>,
    /// Requests that have their turn hold one as well.
    places: Arc<Semaphore>,
    max: (usize, usize),
    streams: Mutex<HashMap<String, usize>>,
}

/// The turn of a request, which ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    _turn: OwnedSemaphorePermit,
    _place: OwnedSemaphorePermit,
}

impl Turns {
    pub(crate) fn new(limits: &Limits) -> Self {
        let most = |number: usize| number.clamp(1, Semaphore::MAX_PERMITS);
        let max =
            (most(limits.max_concurrent), most(limits.max_concurrent.saturating_add(limits.max_waiting)));
        Self {
            turns: Arc::new(Semaphore::new(max.0)),
            places: Arc::new(Semaphore::new(max.1)),
            max,
            streams: Mutex::default(),
        }
    }

    /// Waits for a turn.
    ///
    /// # Errors
    /// [`Kind::Busy`] if too many requests wait already, [`Kind::Deadline`] if the turn does not come in time.
    pub(crate) async fn take(&self, within: Duration) -> Result<Turn, Problem> {
        let busy = || Problem::new(Kind::Busy, "too many requests wait already: come back in a second");
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| busy())?;
        match tokio::time::timeout(within, Arc::clone(&self.turns).acquire_owned()).await {
            Ok(Ok(turn)) => Ok(Turn { _turn: turn, _place: place }),
            Ok(Err(_)) => Err(busy()),
            Err(_) => Err(Problem::new(Kind::Deadline, "the request did not get its turn in time")),
        }
    }

    /// Returns how many requests wait, and how many are worked on.
    pub(crate) fn numbers(&self) -> (usize, usize) {
        let working = self.max.0 - self.turns.available_permits();
        ((self.max.1 - self.places.available_permits()).saturating_sub(working), working)
    }
}

/// An open stream of a key, which ends when it is dropped.
pub(crate) struct Open {
    shared: Arc<Shared>,
    key: String,
}

impl Open {
    /// Counts a stream of this key.
    ///
    /// # Errors
    /// [`Kind::RateLimited`] if the key has too many streams open.
    pub(crate) fn new(shared: &Arc<Shared>, key: &str) -> Result<Self, Problem> {
        let mut streams = shared.turns.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let open = streams.entry(key.to_owned()).or_default();
        let max = shared.engine.limits.max_streams;
        if *open >= max {
            shared.metrics.event("too_many_streams");
            return Err(Problem::new(Kind::RateLimited, format!("the key has {max} streams open already")));
        }
        *open += 1;
        shared.metrics.stream(1);
        Ok(Self { shared: Arc::clone(shared), key: key.to_owned() })
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut streams = self.shared.turns.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = streams.get_mut(&self.key) {
            *open -= 1;
            if *open == 0 {
                streams.remove(&self.key);
            }
        }
        drop(streams);
        self.shared.metrics.stream(-1);
    }
}
