//! The effort for the answers of a configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The effort for one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Effort {
    /// The number of calls.
    pub calls: u64,
    /// The tokens of the requests.
    pub input_tokens: u64,
    /// The tokens of the answers.
    pub output_tokens: u64,
    /// The cost in millionths of a US dollar; null if a price is not known.
    pub micro_usd: Option<u64>,
    /// The time in milliseconds.
    pub millis: u64,
}

/// The effort for the answers of a configuration.
///
/// ```
/// use formwork_eval::{Effort, Spent};
///
/// let one = Effort { calls: 1, input_tokens: 900, output_tokens: 100, micro_usd: Some(135), millis: 1_200 };
/// let spent = Spent::of(&[one, Effort { calls: 2, micro_usd: None, millis: 800, ..one }]);
/// assert_eq!((spent.calls, spent.input_tokens, spent.micro_usd), (3, 1_800, None));
/// assert_eq!((spent.median_millis, spent.p95_millis), (800, 1_200));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Spent {
    /// The number of calls.
    pub calls: u64,
    /// The tokens of all requests.
    pub input_tokens: u64,
    /// The tokens of all answers.
    pub output_tokens: u64,
    /// The cost in millionths of a US dollar; null if a price is not known.
    pub micro_usd: Option<u64>,
    /// The median time for a document in milliseconds.
    pub median_millis: u64,
    /// The time in milliseconds that 95 % of the documents do not exceed.
    pub p95_millis: u64,
}

impl Spent {
    /// Returns the sums of the efforts.
    pub fn of(efforts: &[Effort]) -> Self {
        let mut millis: Vec<u64> = efforts.iter().map(|effort| effort.millis).collect();
        millis.sort_unstable();
        let quantile = |percent: usize| {
            let rank = (millis.len() * percent).div_ceil(100).max(1);
            millis.get(rank - 1).copied().unwrap_or_default()
        };
        let sum = |of: fn(&Effort) -> u64| efforts.iter().map(of).sum();
        Self {
            calls: sum(|effort| effort.calls),
            input_tokens: sum(|effort| effort.input_tokens),
            output_tokens: sum(|effort| effort.output_tokens),
            micro_usd: efforts.iter().map(|effort| effort.micro_usd).sum(),
            median_millis: quantile(50),
            p95_millis: quantile(95),
        }
    }
}
