use std::collections::BTreeMap;

use formwork_core::Restriction;
use schemars::JsonSchema;
use serde::Serialize;

/// The output of `formwork batch run`, `resume`, `retry`, `status` and `watch` with `--json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct BatchOutput {
    /// The folder of the batch.
    pub folder: String,
    /// The input that it was started with.
    pub source: String,
    /// Whether a process works on the batch.
    pub state: BatchState,
    /// The id of the process that works on it; absent if there is none, or its id is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// The rows of the input.
    pub rows: u64,
    /// The rows with a value.
    pub accepted: u64,
    /// The rows without a value that are not asked about any more.
    pub rejected: u64,
    /// The rows without a result.
    pub open: u64,
    /// The calls whose results are stored.
    pub calls: u64,
    /// The tokens of all prompts.
    pub input_tokens: u64,
    /// The tokens of all answers.
    pub output_tokens: u64,
    /// The cost of all calls in US dollars; absent if the price of a call is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The cost of all rows in US dollars, if the open rows cost as much as the others; absent if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_cost_usd: Option<f64>,
    /// The calls that a process makes now, and those that a provider's batch API or Restate has.
    pub in_flight: u64,
    /// The most that these calls cost in US dollars, as far as prices are known. It is not part of `cost_usd`, and counts against
    /// `--budget`.
    pub reserved_cost_usd: f64,
    /// The calls whose results are not known, because their process died or was interrupted.
    pub uncertain: u64,
    /// The most that these calls have cost in US dollars, as far as prices are known. It is not part of `cost_usd`, and counts against
    /// `--budget`.
    pub uncertain_cost_usd: f64,
    /// The number of rejected rows by reason.
    pub reasons: BTreeMap<String, u64>,
    /// The observations about the targets of the batch that are in force.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_force: Vec<Restriction>,
    /// The estimate of `status` while rows are open, and of `--estimate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<BatchEstimate>,
}

/// The state of a batch.
///
/// ```
/// use formwork_cli::rows::BatchState;
///
/// assert_eq!(serde_json::to_string(&BatchState::Paused)?, "\"paused\"");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BatchState {
    /// A process works on the batch.
    Running,
    /// No process works on the batch, and some rows have no result.
    Open,
    /// The user paused it.
    Paused,
    /// The user cancelled it.
    Cancelled,
    /// Every row has a result.
    Done,
}

/// The expected cost of a batch by a sample of its rows.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct BatchEstimate {
    /// The rows whose costs are known.
    pub sampled: u64,
    /// The rows that take calls.
    pub rows: u64,
    /// The unit of the numbers: `usd`, or `tokens` if a price is not known.
    pub unit: &'static str,
    /// The expected cost of all rows.
    pub expected: f64,
    /// The lower end of the interval that has the real cost in 90 of 100 batches.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}
