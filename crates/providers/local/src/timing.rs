use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The time that a model spent on each kind of work, over all calls since it was opened.
///
/// It is wall-clock time of the model's thread, so on a busy machine only ratios are meaningful.
///
/// ```
/// use formwork_local::Timing;
/// use std::time::Duration;
///
/// let mut timing = Timing::default();
/// (timing.decode_tokens, timing.decode) = (90, Duration::from_secs(2));
/// assert_eq!(timing.decode_tokens as f64 / timing.decode.as_secs_f64(), 45.0);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timing {
    /// The time for rendering and tokenizing dialogues, and compiling schemas.
    pub preparing: Duration,
    /// The number of prompt tokens that were computed; cached tokens do not count.
    pub prompt_tokens: u64,
    /// The time for computing prompt tokens.
    pub prompt: Duration,
    /// The number of answer tokens that were computed, with those of grounded texts that were compared and not chosen.
    pub decode_tokens: u64,
    /// The time for computing answer tokens.
    pub decode: Duration,
    /// The time for the constraint and the choice of tokens: decoding without the model.
    pub choosing: Duration,
}

/// The time of one forward pass, and of the choice that followed.
///
/// A repeated call has the same steps, so the median of each step over some calls is its cost even on a busy machine,
/// unlike a sum.
///
/// ```
/// use formwork_local::Step;
///
/// let steps = [Step::default(), Step::default()];
/// let total: std::time::Duration = steps.iter().map(|step| step.decode + step.choosing).sum();
/// assert!(total.is_zero());
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// The time for computing the tokens of the previous step; zero for the first step, whose pass also computes the
    /// end of the prompt.
    pub decode: Duration,
    /// The time for the choice after it; see [`Timing::choosing`].
    pub choosing: Duration,
}

/// The timing of a model; its thread writes it, and handles read it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Timer(Arc<Mutex<Measured>>);

#[derive(Debug, Default)]
struct Measured {
    timing: Timing,
    /// The steps of the last answer.
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

    /// Starts the steps of another answer.
    pub(crate) fn begin(&self) {
        self.lock().steps.clear();
    }

    /// Records a forward pass over tokens of an answer.
    pub(crate) fn looked(&self, tokens: u64, took: Duration) {
        let mut measured = self.lock();
        measured.timing.decode_tokens += tokens;
        measured.timing.decode += took;
        measured.steps.push(Step { decode: took, choosing: Duration::ZERO });
    }

    /// Records a forward pass over the end of a prompt.
    pub(crate) fn read(&self, tokens: u64, took: Duration) {
        let mut measured = self.lock();
        measured.timing.prompt_tokens += tokens;
        measured.timing.prompt += took;
        measured.steps.push(Step::default());
    }

    /// Records the work between two forward passes, or after the last one.
    pub(crate) fn chose(&self, took: Duration) {
        let mut measured = self.lock();
        measured.timing.choosing += took;
        if let Some(step) = measured.steps.last_mut() {
            step.choosing = took;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Measured> {
        // Sums stay valid after a panic of another holder of the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
