//! The open streams of each key.

use std::sync::{Arc, PoisonError};

use super::Shared;
use crate::problem::{Kind, Problem};

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
