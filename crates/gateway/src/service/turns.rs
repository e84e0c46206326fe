use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use formwork_serve::{Queue, QueueError, Turn};

use super::Shared;
use crate::limits::Limits;
use crate::problem::{Kind, Problem};

/// The requests that are worked on, those that wait, and the open streams of each key.
#[derive(Debug)]
pub(crate) struct Turns {
    pub(super) queue: Queue,
    streams: Mutex<HashMap<String, usize>>,
}

impl Turns {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { queue: Queue::new(limits.max_concurrent, limits.max_waiting), streams: Mutex::default() }
    }

    /// Waits for the turn of a client.
    ///
    /// # Errors
    /// [`Kind::Busy`] if too many requests wait already, [`Kind::Deadline`] if the turn does not come in time.
    pub(crate) async fn take(&self, client: &str, within: Duration) -> Result<Turn, Problem> {
        self.queue.take(client, within).await.map_err(|error| match error {
            QueueError::Full => {
                Problem::new(Kind::Busy, "too many requests wait already: come back in a second")
            }
            QueueError::TooLate => Problem::new(Kind::Deadline, "the request did not get its turn in time"),
        })
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
