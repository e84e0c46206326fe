//! The comparison of several configurations on the same gold.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Baseline, Report};

/// The results of several configurations, as `formwork eval --json` prints them.
///
/// ```
/// use formwork_eval::{Comparison, Evaluation, Profile};
/// use serde_json::json;
///
/// let report = |name: &str, answer: i64| {
///     let mut evaluation = Evaluation::new(Profile::Default);
///     evaluation.add(json!(1), None, &json!({"a": 1}), Some(&json!({"a": answer})))?;
///     Ok::<_, String>(evaluation.report(1).with_name(name))
/// };
/// let comparison = Comparison::new(vec![report("small", 2)?, report("large", 1)?], 1);
/// let pair = &comparison.pairs[0];
/// assert_eq!((pair.one.as_str(), pair.other.as_str(), pair.comparison.difference), ("small", "large", 1.0));
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The result of each configuration.
    pub configurations: Vec<Report>,
    /// The comparison of each two of them, document by document.
    pub pairs: Vec<Pair>,
}

/// The comparison of two configurations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pair {
    /// The name of the first configuration, which stands in the place of the baseline.
    pub one: String,
    /// The name of the second configuration.
    pub other: String,
    /// The difference: positive if the second configuration is better.
    pub comparison: Baseline,
}

impl Comparison {
    /// Compares each two configurations that have documents in common. `seed` determines the resamples.
    pub fn new(configurations: Vec<Report>, seed: u64) -> Self {
        let mut pairs = Vec::new();
        for (number, one) in configurations.iter().enumerate() {
            for other in configurations.iter().skip(number + 1) {
                if let Some(comparison) = Baseline::new(&one.rows, &other.rows, seed) {
                    let (one, other) = (one.name.clone(), other.name.clone());
                    let [one, other] = [one, other].map(Option::unwrap_or_default);
                    pairs.push(Pair { one, other, comparison });
                }
            }
        }
        Self { configurations, pairs }
    }
}
