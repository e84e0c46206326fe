use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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

/// The time of one look of the model, and of what was done with it.
///
/// A call that is made again takes the same steps, so the medians of each step over some calls say what it costs on a
/// machine that is busy, where sums do not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// Looking at the tokens of the step before; zero for the first look, which also reads the end of the prompt.
    pub decode: Duration,
    /// The time of what followed it: see [`Timing::choosing`].
    pub choosing: Duration,
}

/// The timing of a model, which its thread writes and its handles read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Timer(Arc<Mutex<Measured>>);

#[derive(Debug, Default)]
struct Measured {
    timing: Timing,
    /// Of the last answer.
    steps: Vec<Step>,
}

impl Timer {
    pub(crate) fn get(&self) -> Timing {
        self.lock().timing
    }

    pub(crate) fn steps(&self) -> Vec<Step> {
        self.lock().steps.clone()
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Timing)) {
        change(&mut self.lock().timing);
    }

    /// Says that the steps from here on are those of another answer.
    pub(crate) fn begin(&self) {
        self.lock().steps.clear();
    }

    /// Takes in a look at tokens of an answer.
    pub(crate) fn looked(&self, tokens: u64, took: Duration) {
        let mut measured = self.lock();
        measured.timing.decode_tokens += tokens;
        measured.timing.decode += took;
        measured.steps.push(Step { decode: took, choosing: Duration::ZERO });
    }

    /// Takes in a look at the end of a prompt.
    pub(crate) fn read(&self, tokens: u64, took: Duration) {
        let mut measured = self.lock();
        measured.timing.prompt_tokens += tokens;
        measured.timing.prompt += took;
        measured.steps.push(Step::default());
    }

    /// Takes in what was done between two looks, or after the last one.
    pub(crate) fn chose(&self, took: Duration) {
        let mut measured = self.lock();
        measured.timing.choosing += took;
        if let Some(step) = measured.steps.last_mut() {
            step.choosing = took;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Measured> {
        // Sums of numbers hold whatever panicked while they were locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
