use std::fmt;
use std::time::Duration;

use formwork_ledger::KeyId;
use formwork_serve::{Queue, QueueError, Seats, Turn};

use crate::limits::Limits;
use crate::problem::{Kind, Problem};

/// The requests that are worked on, those that wait, and the open streams of each key.
#[derive(Debug)]
pub(crate) struct Turns {
    pub(super) queue: Queue,
    pub(super) streams: Seats<Option<KeyId>>,
}

impl Turns {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { queue: Queue::new(limits.max_concurrent, limits.max_waiting), streams: Seats::default() }
    }

    /// Waits for the turn of a client.
    ///
    /// # Errors
    /// [`Kind::Busy`] if too many requests wait already, [`Kind::Deadline`] if the turn does not come in time.
    pub(crate) async fn take(&self, client: impl fmt::Display, within: Duration) -> Result<Turn, Problem> {
        self.queue.take(client, within).await.map_err(|error| match error {
            QueueError::Full => {
                Problem::new(Kind::Busy, "too many requests wait already: come back in a second")
            }
            QueueError::TooLate => Problem::new(Kind::Deadline, "the request did not get its turn in time"),
        })
    }
}
