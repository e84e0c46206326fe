use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Where a model's time went, over all calls since it was opened.
///
/// It is wall time of the model's thread, so only shares of it mean something on a machine that is busy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timing {
    /// Writing dialogues in the model's template and tokens, and turning schemas into constraints.
    pub preparing: Duration,
    /// Tokens of prompts that were read; those kept from an earlier call do not count.
    pub prompt_tokens: u64,
    /// Reading them.
    pub prompt: Duration,
    /// Tokens of answers that the model looked at.
    pub decode_tokens: u64,
    /// Looking at them.
    pub decode: Duration,
    /// Working out which tokens a schema allows, choosing one, following it: decoding without the model.
    pub choosing: Duration,
}

/// The timing of a model, which its thread writes and its handles read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Timer(Arc<Mutex<Timing>>);

impl Timer {
    pub(crate) fn get(&self) -> Timing {
        // Sums of numbers hold whatever panicked while they were locked.
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Timing)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
