use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use formwork_core::{Plan, Run};

/// The maximum number of plans whose answers are remembered.
const MAX_PLANS: usize = 1_024;

/// The share of runs with a second call from which on writing a task to a prompt cache in the first call pays: with Anthropic's prices
/// the mark costs a quarter of the task in each run, and saves 1.15 of it in a run with a second call.
const PAYS_PERCENT: u32 = 22;

/// The number of runs that a share needs.
const MIN_RUNS: u32 = 8;

/// The answers of all runs of a driver to one contract.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Answers {
    /// The tokens of the longest complete answer; 0 if there is none.
    pub(crate) longest: u64,
    runs: u32,
    /// The runs with a second answer.
    repeated: u32,
}

impl Answers {
    /// Returns whether a second call is likely enough to ask for a prompt cache in the first one.
    pub(crate) const fn expects_reask(self) -> bool {
        self.runs >= MIN_RUNS && self.repeated * 100 >= self.runs * PAYS_PERCENT
    }
}

/// The answers to each contract, over all runs of a driver.
#[derive(Debug, Clone, Default)]
pub(crate) struct Longest(Arc<Mutex<HashMap<String, Answers>>>);

impl Longest {
    /// Returns the answers of earlier runs.
    pub(crate) fn of(&self, plan: &Plan) -> Answers {
        self.known().get(plan.schema_digest()).copied().unwrap_or_default()
    }

    /// Takes in the answers of a run.
    pub(crate) fn learn(&self, plan: &Plan, run: &Run) {
        let mut known = self.known();
        if known.len() >= MAX_PLANS && !known.contains_key(plan.schema_digest()) {
            known.clear();
        }
        let answers = known.entry(plan.schema_digest().to_owned()).or_default();
        answers.longest = run.longest_answer().max(answers.longest);
        // Old runs lose weight, so that the share follows a change.
        if answers.runs >= 1_000 {
            (answers.runs, answers.repeated) = (answers.runs / 2, answers.repeated / 2);
        }
        answers.runs += 1;
        answers.repeated += u32::from(run.answers() > 1);
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Answers>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
