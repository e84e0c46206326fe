use std::collections::BTreeMap;

use serde::Serialize;

/// The progress of a batch: its numbers of rows, calls and tokens, and the cost.
///
/// ```
/// use formwork_batch::Progress;
///
/// let mut progress = Progress::default();
/// (progress.rows, progress.accepted, progress.rejected) = (10, 6, 1);
/// assert_eq!((progress.finished(), progress.open()), (7, 3));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Progress {
    /// The rows of the batch.
    pub rows: u64,
    /// The rows with a value.
    pub accepted: u64,
    /// The rows without a value that are not processed any more.
    pub rejected: u64,
    /// The rows that were begun and have no result yet.
    pub begun: u64,
    /// The calls whose results are stored.
    pub calls: u64,
    /// The tokens of all prompts.
    pub input_tokens: u64,
    /// The tokens of all answers.
    pub output_tokens: u64,
    /// The cost of all calls in millionths of a US dollar, as far as prices are known.
    pub micro_usd: u64,
    /// The calls whose price is not known.
    pub unpriced: u64,
    /// The calls that a process makes now, or a provider's batch API, or Restate.
    pub in_flight: u64,
    /// The most that they cost in millionths of a US dollar, as far as prices are known.
    pub reserved_micro_usd: u64,
    /// The calls that left and whose results are not known, because their process died or was interrupted. They may have been paid for.
    pub uncertain: u64,
    /// The most that they have cost in millionths of a US dollar, as far as prices are known. It is not part of `micro_usd`.
    pub uncertain_micro_usd: u64,
    /// The number of rejected rows by reason.
    pub reasons: BTreeMap<String, u64>,
}

impl Progress {
    /// Returns the number of rows without a result.
    pub const fn open(&self) -> u64 {
        self.rows.saturating_sub(self.finished())
    }

    /// Returns the number of rows with a result.
    pub const fn finished(&self) -> u64 {
        self.accepted + self.rejected
    }
}
