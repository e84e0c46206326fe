//! The open streams of each key.

use std::sync::Arc;

use formwork_ledger::KeyId;
use formwork_serve::Seat;

use super::Shared;
use crate::access::Client;
use crate::metrics::Metrics;
use crate::problem::{Kind, Problem};

/// An open stream of a key, which ends when it is dropped.
pub(crate) struct Open {
    metrics: Arc<Metrics>,
    _seat: Seat<Option<KeyId>>,
}

impl Open {
    /// Counts a stream of a client.
    ///
    /// # Errors
    /// [`Kind::RateLimited`] if the key has too many streams open.
    pub(crate) fn new(shared: &Shared, client: &Client) -> Result<Self, Problem> {
        let max = shared.engine.limits.max_streams;
        let Some(_seat) = shared.turns.streams.take(client.id(), max) else {
            shared.metrics.event("too_many_streams");
            return Err(Problem::new(Kind::RateLimited, format!("the key has {max} streams open already")));
        };
        shared.metrics.stream(1);
        Ok(Self { metrics: Arc::clone(&shared.metrics), _seat })
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.metrics.stream(-1);
    }
}
