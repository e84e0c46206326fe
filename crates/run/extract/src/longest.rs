use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use formwork_core::{Plan, Run};

/// The maximum number of plans whose answers are remembered.
const MAX_PLANS: usize = 1_024;

/// The tokens of the longest complete answer to each contract, over all runs of a driver.
#[derive(Debug, Clone, Default)]
pub(crate) struct Longest(Arc<Mutex<HashMap<String, u64>>>);

impl Longest {
    /// Returns the tokens of the longest answer of earlier runs; 0 if there is none.
    pub(crate) fn of(&self, plan: &Plan) -> u64 {
        self.known().get(plan.schema_digest()).copied().unwrap_or_default()
    }

    /// Takes in the answers of a run.
    pub(crate) fn learn(&self, plan: &Plan, run: &Run) {
        let mut known = self.known();
        if known.len() >= MAX_PLANS && !known.contains_key(plan.schema_digest()) {
            known.clear();
        }
        let longest = known.entry(plan.schema_digest().to_owned()).or_default();
        *longest = run.longest_answer().max(*longest);
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
